import numpy as np
import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import EvolutionConfig
from litaagent_std.hrl_xf.online.methods.evolution import EvolutionMethod
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.online.methods.shifts import INPUTS
from litaagent_std.policy.l2.residual import goal_names

NAMES = goal_names(4)
START = untrained(("l2",), 0, {"l2": 4})
STEPS = np.array([0.3] * 8 + [0.5] * 21)  # of quantities, and of all else


class FakeSeat:
    def __init__(self, score):
        self.score = score


class FakeWorld:
    def __init__(self, score):
        self.seats = [FakeSeat(score)]


def test_evolution_climbs_a_hill():
    method = EvolutionMethod(EvolutionConfig(pairs=6, sigma=0.2, learning_rate=0.1, decay=0.0, inputs=()), 1, START)
    goal = np.linspace(-1, 1, 29)
    for _ in range(60):
        jobs = method.jobs([None, None])
        scores = [1.0 if not job.policies.nets else _height(job.policies, goal) for job in jobs]
        method.update(jobs, [FakeWorld(score) for score in scores])
    assert method.version == 60
    assert _height(method.policies(), goal) > 0.9


def test_evolution_changes_only_the_inputs_and_outputs_that_are_named():
    cfg = EvolutionConfig(pairs=2, inputs=("progress",), outputs=("hold_far", "unit_value"))
    method = EvolutionMethod(cfg, 1, START)
    assert len(method.theta) == 4
    jobs = method.jobs([None])
    method.update(jobs, [FakeWorld(float(index)) for index in range(len(jobs))])
    arrays = method.policies().nets["l2"].arrays
    assert [NAMES[column] for column in np.flatnonzero(arrays["head.bias"])] == ["hold_far", "unit_value"]
    assert [INPUTS[column] for column in np.flatnonzero(arrays["skip.weight"].any(0))] == ["progress"]
    with pytest.raises(ConfigurationError, match="no output named nothing"):
        EvolutionMethod(EvolutionConfig(outputs=("nothing",)), 1, START)


def _height(policies, goal):
    return 1.0 - float(np.square(policies.nets["l2"].arrays["head.bias"] / STEPS - goal).mean())
