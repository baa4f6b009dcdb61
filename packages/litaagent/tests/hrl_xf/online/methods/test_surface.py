import numpy as np
import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.steering import DAY_ACTIONS
from litaagent_std.agents.online.views import DAY_VIEW
from litaagent_std.hrl_xf.online.config import SurfaceConfig
from litaagent_std.hrl_xf.online.methods.surface import SufficientStatistics, SurfaceMethod
from litaagent_std.policy.parameters import LEVELS

GOALS = {"first": (0.6, 0.0), "middle": (0.0, 0.0), "last": (-0.5, 0.4)}
OUTPUTS = ("sell_price_far", "hold")
CURVATURE = 0.04


class FakeSeat:
    def __init__(self, level, score):
        self.kind, self.score = f"3-{level}", score


class FakeWorld:
    def __init__(self, seats):
        self.seats = seats


def action_at(policies, level):
    net = policies.nets.get("l2", ActingNet.zeros("l2"))
    view = np.zeros(len(DAY_VIEW), np.float32)
    view[DAY_VIEW.index(f"level_{level}")] = 1.0
    return net.mean(view)[[DAY_ACTIONS.index(name) for name in OUTPUTS]]


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
    method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), seed=1)
    climb(method, updates=10, worlds=40, noise=0.05, rng=np.random.default_rng(2))
    assert method.version == 10
    for level, goal in GOALS.items():
        np.testing.assert_allclose(action_at(method.policies(), level), goal, atol=0.25)
    gained = sum(height(method.policies(), level) - height(PolicySet(), level) for level in LEVELS)
    possible = -sum(height(PolicySet(), level) for level in LEVELS)
    assert gained > 0.8 * possible > 0.01


def test_where_there_is_nothing_to_gain_the_policy_stays_near_zero():
    def flat_top(policies, level):
        return -0.5 * CURVATURE * float(np.square(action_at(policies, level)).sum())

    lost = []
    for seed in range(5):
        method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), seed=seed)
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
    method = SurfaceMethod(SurfaceConfig(), seed=0)
    assert not method.policies().nets["l2"].weights[0].any()
    assert method.centre.shape == (len(LEVELS), len(DAY_ACTIONS))


def test_the_state_carries_everything():
    rng = np.random.default_rng(4)
    first = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS), seed=1)
    climb(first, updates=2, worlds=10, noise=0.05, rng=rng)
    second = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS), seed=1)
    second.load_state_dict(first.state_dict())
    for one, other in zip(first.jobs([None]), second.jobs([None]), strict=True):
        assert one.policies.version == other.policies.version == 2
        for layer in one.policies.nets:
            np.testing.assert_array_equal(one.policies.nets[layer].weights[0], other.policies.nets[layer].weights[0])


def test_refusals():
    with pytest.raises(ConfigurationError, match="no output named nothing"):
        SurfaceMethod(SurfaceConfig(outputs=("nothing",)), seed=1)
    with pytest.raises(ConfigurationError, match="warm start"):
        SurfaceMethod(SurfaceConfig(), seed=1, warm_start=PolicySet())


def price_at(policies, progress):
    net = policies.nets.get("l2", ActingNet.zeros("l2"))
    view = np.zeros(len(DAY_VIEW), np.float32)
    view[[DAY_VIEW.index("level_middle"), DAY_VIEW.index("progress")]] = 1.0, progress
    return float(net.mean(view)[DAY_ACTIONS.index("sell_price_far")])


def test_outputs_may_depend_on_an_input():
    def early_is_low(policies, level):
        misses = [price_at(policies, progress) - (0.8 * progress - 0.6) for progress in (0.0, 0.5, 1.0)]
        return -0.5 * 0.1 * float(np.square(misses).mean())

    cfg = SurfaceConfig(outputs=("sell_price_far",), inputs=("progress",), sigma=0.5)
    method = SurfaceMethod(cfg, seed=1, levels=("middle",))
    climb(method, updates=10, worlds=40, noise=0.03, rng=np.random.default_rng(2), goal=early_is_low)
    assert price_at(method.policies(), 0.0) == pytest.approx(-0.6, abs=0.25)
    assert price_at(method.policies(), 1.0) == pytest.approx(0.2, abs=0.25)
    with pytest.raises(ConfigurationError, match="one slope for all levels"):
        SurfaceMethod(cfg, seed=1)
    with pytest.raises(ConfigurationError, match="L2 has no input named weather"):
        SurfaceMethod(SurfaceConfig(inputs=("weather",)), seed=1, levels=("middle",))


def test_a_slope_without_an_optimum_is_climbed():
    def falls_to_one_side(policies, level):  # a perturbation to either side helps or changes nothing
        return 0.03 * max(0.0, -float(action_at(policies, level)[0]))

    method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), seed=1, levels=("middle",))
    climb(method, updates=8, worlds=40, noise=0.03, rng=np.random.default_rng(2), goal=falls_to_one_side)
    price, hold = action_at(method.policies(), "middle")
    assert price < -0.6
    assert abs(hold) < 0.3
