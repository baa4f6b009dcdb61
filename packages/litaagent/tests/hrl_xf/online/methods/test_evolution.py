import numpy as np
import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import EvolutionConfig
from litaagent_std.hrl_xf.online.methods.evolution import EvolutionMethod


class FakeSeat:
    def __init__(self, score):
        self.score = score


class FakeWorld:
    def __init__(self, score):
        self.seats = [FakeSeat(score)]


def test_evolution_climbs_a_hill():
    method = EvolutionMethod(EvolutionConfig(pairs=6, sigma=0.2, learning_rate=0.1, decay=0.0, inputs=()), seed=1)
    goal = np.linspace(-1, 1, 12)
    for _ in range(40):
        jobs = method.jobs([None, None])
        scores = [1.0 if not job.policies.nets else _height(job.policies, goal) for job in jobs]
        method.update(jobs, [FakeWorld(score) for score in scores])
    assert method.version == 40
    assert _height(method.policies(), goal) > 0.9


def test_evolution_changes_only_the_inputs_and_outputs_that_are_named():
    cfg = EvolutionConfig(pairs=2, inputs=("level_first",), outputs=("hold", "unit_value"))
    method = EvolutionMethod(cfg, seed=1)
    assert len(method.theta) == 4
    jobs = method.jobs([None])
    method.update(jobs, [FakeWorld(float(index)) for index in range(len(jobs))])
    net = method.policies().nets["l2"]
    assert np.flatnonzero(net.biases[0]).tolist() == [10, 11]
    assert np.flatnonzero(net.weights[0].any(1)).tolist() == [0]
    with pytest.raises(ConfigurationError, match="no output named nothing"):
        EvolutionMethod(EvolutionConfig(outputs=("nothing",)), seed=1)


def _height(policies, goal):
    return 1.0 - float(np.square(policies.nets["l2"].biases[0] - goal).mean())
