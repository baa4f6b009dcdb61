import numpy as np
import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import OnlineConfig, SurfaceConfig
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.methods import make_method
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.online.methods.shifts import INPUTS
from litaagent_std.hrl_xf.online.methods.surface import SufficientStatistics, SurfaceMethod
from litaagent_std.policy.l2.residual import goal_names
from litaagent_std.policy.parameters import LEVELS

NAMES = goal_names(4)
START = untrained(("l2",), 0, {"l2": 4})
STEP = 0.5  # of prices and values
ROLES = {"first": (0.0, 1.0), "middle": (1.0, 1.0), "last": (1.0, 0.0)}

GOALS = {"first": (0.6, 0.0), "middle": (0.0, 0.0), "last": (-0.5, 0.4)}
OUTPUTS = ("sell_price_far", "hold_today")
CURVATURE = 0.04


class FakeSeat:
    def __init__(self, level, score):
        self.kind, self.score = f"3-{level}", score


class FakeWorld:
    def __init__(self, seats):
        self.seats = seats


def action_at(policies, level, outputs=OUTPUTS, **inputs):
    """The shifts at a level, in steps, with some inputs."""
    if not policies.nets:
        return np.zeros(len(outputs))
    arrays = policies.nets["l2"].arrays
    view = np.zeros(arrays["skip.weight"].shape[1], np.float32)
    for name, value in {**dict(zip(("buys", "sells"), ROLES[level], strict=True)), **inputs}.items():
        view[INPUTS.index(name)] = value
    residual = arrays["head.bias"] + arrays["skip.weight"] @ view
    return residual[[NAMES.index(name) for name in outputs]] / STEP


def height(policies, level):
    return -0.5 * CURVATURE * float(np.square(action_at(policies, level) - GOALS[level]).sum())


def climb(method, updates, worlds, noise, rng, goal=height):
    for _ in range(updates):
        jobs = method.jobs([None] * worlds)
        bases = rng.normal(1.3, 0.3, (worlds, 3))  # what the worlds themselves decide
        played = []
        for index, job in enumerate(jobs):
            members = 2 * method.cfg.pairs
            world = index // members if job.policies.nets else index - worlds * members
            seats = [
                FakeSeat(level, bases[world, row] + goal(job.policies, level) + rng.normal(0, noise))
                for row, level in enumerate(LEVELS)
            ]
            played.append(FakeWorld(seats))
        method.update(jobs, played)


def test_the_optimum_is_found_through_noise_ten_times_the_gain():
    method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), 1, START)
    climb(method, updates=10, worlds=40, noise=0.05, rng=np.random.default_rng(2))
    assert method.version == 10
    for level, goal in GOALS.items():
        np.testing.assert_allclose(action_at(method.policies(), level), goal, atol=0.25)
    gained = sum(height(method.policies(), level) - height(Hierarchy(), level) for level in LEVELS)
    possible = -sum(height(Hierarchy(), level) for level in LEVELS)
    assert gained > 0.8 * possible > 0.01


def test_where_there_is_nothing_to_gain_the_policy_stays_near_zero():
    def flat_top(policies, level):
        return -0.5 * CURVATURE * float(np.square(action_at(policies, level)).sum())

    lost = []
    for seed in range(5):
        method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), seed, START)
        climb(method, updates=4, worlds=40, noise=0.05, rng=np.random.default_rng(seed), goal=flat_top)
        lost += [flat_top(method.policies(), level) for level in LEVELS]
    assert np.mean(lost) > -0.001


def test_the_fit_is_that_of_ordinary_least_squares_where_data_are_many():
    rng = np.random.default_rng(3)
    statistics = SufficientStatistics.empty(2)
    for _ in range(5000):
        x = rng.normal(0, 0.5, (5, 2))
        scores = x @ [0.03, -0.02] - 0.5 * np.square(x) @ [0.05, 0.10] + rng.normal() + rng.normal(0, 0.1, 5)
        statistics = statistics.with_seat(x, scores)
    assert statistics.degrees == 20_000
    assert statistics.noise == pytest.approx(0.1, rel=0.25)
    optimum = statistics.optimum(reach=1.0)
    np.testing.assert_allclose(optimum.x, [0.6, -0.2], atol=0.12)
    assert optimum.gain == pytest.approx(0.5 * (0.03**2 / 0.05 + 0.02**2 / 0.10), rel=0.25)
    np.testing.assert_allclose(statistics.optimum(reach=0.3).x, [0.3, -0.2], atol=0.12)


def test_before_any_world_it_is_the_heuristic_agent():
    method = SurfaceMethod(SurfaceConfig(), 0, START)
    assert not method.policies().nets["l2"].arrays["head.bias"].any()
    assert method.centre.shape == (len(LEVELS), len(NAMES))


def test_the_state_carries_everything():
    rng = np.random.default_rng(4)
    first = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS), 1, START)
    climb(first, updates=2, worlds=10, noise=0.05, rng=rng)
    second = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS), 1, START)
    second.load_state_dict(first.state_dict())
    for one, other in zip(first.jobs([None]), second.jobs([None]), strict=True):
        assert one.policies.version == other.policies.version == 2
        for layer in one.policies.nets:
            for name, array in one.policies.nets[layer].arrays.items():
                np.testing.assert_array_equal(array, other.policies.nets[layer].arrays[name])


def test_refusals():
    with pytest.raises(ConfigurationError, match="no output named nothing"):
        SurfaceMethod(SurfaceConfig(outputs=("nothing",)), 1, START)
    with pytest.raises(ConfigurationError, match="--warm"):
        make_method(OnlineConfig(method="surface"), START)


@pytest.mark.parametrize("method", ["es", "surface"])
def test_layers_that_a_method_does_not_learn_are_named(method, caplog):
    make_method(OnlineConfig(method=method), None)
    assert not caplog.records
    make_method(OnlineConfig(method=method, layers=("l2", "l3")), None)
    assert f"--method {method} learns L2 alone, not --layers l2 l3" in caplog.text


def price_at(policies, progress):
    return float(action_at(policies, "middle", ("sell_price_far",), progress=progress)[0])


def test_outputs_may_depend_on_an_input():
    def early_is_low(policies, level):
        misses = [price_at(policies, progress) - (0.8 * progress - 0.6) for progress in (0.0, 0.5, 1.0)]
        return -0.5 * 0.1 * float(np.square(misses).mean())

    cfg = SurfaceConfig(outputs=("sell_price_far",), inputs=("progress",), sigma=0.5)
    method = SurfaceMethod(cfg, 1, START, levels=("middle",))
    climb(method, updates=10, worlds=40, noise=0.03, rng=np.random.default_rng(2), goal=early_is_low)
    assert price_at(method.policies(), 0.0) == pytest.approx(-0.6, abs=0.25)
    assert price_at(method.policies(), 1.0) == pytest.approx(0.2, abs=0.25)
    with pytest.raises(ConfigurationError, match="one slope for all levels"):
        SurfaceMethod(cfg, 1, START)
    with pytest.raises(ConfigurationError, match="L2 has no input named weather"):
        SurfaceMethod(SurfaceConfig(inputs=("weather",)), 1, START, levels=("middle",))


def test_a_slope_without_an_optimum_is_climbed():
    def falls_to_one_side(policies, level):  # a perturbation to either side helps or changes nothing
        return 0.03 * max(0.0, -float(action_at(policies, level)[0]))

    method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), 1, START, levels=("middle",))
    climb(method, updates=8, worlds=40, noise=0.03, rng=np.random.default_rng(2), goal=falls_to_one_side)
    price, hold = action_at(method.policies(), "middle")
    assert price < -0.6
    assert abs(hold) < 0.3
