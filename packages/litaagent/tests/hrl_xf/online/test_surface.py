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
    def __init__(self, place, score):
        self.kind, self.score = f"3-{place}", score


class FakeWorld:
    def __init__(self, seats):
        self.seats = seats


def numbers_of(policies, place):
    net = policies.nets.get("l2", ActingNet.zeros("l2"))
    view = np.zeros(len(DAY_VIEW), np.float32)
    view[DAY_VIEW.index(f"level_{place}")] = 1.0
    return net.mean(view)[[DAY_ACTIONS.index(name) for name in OUTPUTS]]


def height(policies, place):
    return -0.5 * CURVATURE * float(np.square(numbers_of(policies, place) - GOALS[place]).sum())


def climb(method, updates, worlds, noise, luck, goal=height):
    for _ in range(updates):
        jobs = method.jobs([None] * worlds)
        lots = luck.normal(1.3, 0.3, (worlds, 3))  # what the worlds themselves decide
        played = []
        for number, job in enumerate(jobs):
            members = 2 * method.cfg.pairs
            world = number // members if job.policies.nets else number - worlds * members
            seats = [
                FakeSeat(place, lots[world, row] + goal(job.policies, place) + luck.normal(0, noise))
                for row, place in enumerate(LEVELS)
            ]
            played.append(FakeWorld(seats))
        method.update(jobs, played)


def test_the_top_is_found_through_noise_ten_times_the_gain():
    method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), seed=1)
    climb(method, updates=10, worlds=40, noise=0.05, luck=np.random.default_rng(2))
    assert method.version == 10
    for place, goal in GOALS.items():
        found = numbers_of(method.policies(), place)
        np.testing.assert_allclose(found, goal, atol=0.25)
    gained = sum(height(method.policies(), place) - height(PolicySet(), place) for place in LEVELS)
    possible = -sum(height(PolicySet(), place) for place in LEVELS)
    assert gained > 0.8 * possible > 0.01


def test_where_nothing_is_to_be_gained_little_is_moved():
    def flat_top(policies, place):
        return -0.5 * CURVATURE * float(np.square(numbers_of(policies, place)).sum())

    lost = []
    for seed in range(5):
        method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), seed=seed)
        climb(method, updates=4, worlds=40, noise=0.05, luck=np.random.default_rng(seed), goal=flat_top)
        lost += [flat_top(method.policies(), place) for place in LEVELS]
    assert np.mean(lost) > -0.001


def test_the_fit_is_that_of_ordinary_least_squares_where_data_are_many():
    luck = np.random.default_rng(3)
    found = SufficientStatistics.nothing(2)
    for _ in range(5000):
        x = luck.normal(0, 0.5, (5, 2))
        scores = x @ [0.03, -0.02] - 0.5 * np.square(x) @ [0.05, 0.10] + luck.normal() + luck.normal(0, 0.1, 5)
        found = found.with_seat(x, scores)
    assert found.degrees == 20_000
    assert found.noise == pytest.approx(0.1, rel=0.25)
    top = found.top(reach=1.0)
    np.testing.assert_allclose(top.x, [0.6, -0.2], atol=0.12)
    assert top.gain == pytest.approx(0.5 * (0.03**2 / 0.05 + 0.02**2 / 0.10), rel=0.25)
    np.testing.assert_allclose(found.top(reach=0.3).x, [0.3, -0.2], atol=0.12)


def test_before_any_world_it_is_the_heuristic_agent():
    method = SurfaceMethod(SurfaceConfig(), seed=0)
    assert not method.policies().nets["l2"].weights[0].any()
    assert method.centre.shape == (len(LEVELS), len(DAY_ACTIONS))


def test_the_state_carries_everything():
    luck = np.random.default_rng(4)
    first = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS), seed=1)
    climb(first, updates=2, worlds=10, noise=0.05, luck=luck)
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
        SurfaceMethod(SurfaceConfig(), seed=1, warm=PolicySet())


def numbers_at(policies, progress):
    net = policies.nets.get("l2", ActingNet.zeros("l2"))
    view = np.zeros(len(DAY_VIEW), np.float32)
    view[[DAY_VIEW.index("level_middle"), DAY_VIEW.index("progress")]] = 1.0, progress
    return float(net.mean(view)[DAY_ACTIONS.index("sell_price_far")])


def test_numbers_may_follow_an_input():
    def early_is_low(policies, place):
        misses = [numbers_at(policies, progress) - (0.8 * progress - 0.6) for progress in (0.0, 0.5, 1.0)]
        return -0.5 * 0.1 * float(np.square(misses).mean())

    cfg = SurfaceConfig(outputs=("sell_price_far",), inputs=("progress",), sigma=0.5)
    method = SurfaceMethod(cfg, seed=1, places=("middle",))
    climb(method, updates=10, worlds=40, noise=0.03, luck=np.random.default_rng(2), goal=early_is_low)
    assert numbers_at(method.policies(), 0.0) == pytest.approx(-0.6, abs=0.25)
    assert numbers_at(method.policies(), 1.0) == pytest.approx(0.2, abs=0.25)
    with pytest.raises(ConfigurationError, match="one slope for all places"):
        SurfaceMethod(cfg, seed=1)
    with pytest.raises(ConfigurationError, match="L2 has no input named weather"):
        SurfaceMethod(SurfaceConfig(inputs=("weather",)), seed=1, places=("middle",))


def test_a_slope_without_a_top_is_climbed():
    def falls_to_one_side(policies, place):  # a perturbation to either side helps or changes nothing
        return 0.03 * max(0.0, -float(numbers_of(policies, place)[0]))

    method = SurfaceMethod(SurfaceConfig(outputs=OUTPUTS, sigma=0.5), seed=1, places=("middle",))
    climb(method, updates=8, worlds=40, noise=0.03, luck=np.random.default_rng(2), goal=falls_to_one_side)
    price, hold = numbers_of(method.policies(), "middle")
    assert price < -0.6
    assert abs(hold) < 0.3
