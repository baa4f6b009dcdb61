from dataclasses import replace

import numpy as np
import pytest
from negmas import ResponseType

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.seat import PolicyLayers
from litaagent_std.agents.online.steering import DAY_ACTIONS, SteeredLayers, clipped, shift_goals
from litaagent_std.hrl_xf.online.lockstep import Lockstep, LockstepAgent
from litaagent_std.hrl_xf.online.rollout import play_world
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights
from litaagent_std.policy.adaptors import stacked
from litaagent_std.policy.layers import LayerSet
from litaagent_std.policy.observation import Offer
from litaagent_std.policy.plan import BoundsBatch, Goals
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec

SHIPPED = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL")


@pytest.mark.parametrize("rounds", [False, True])
@pytest.mark.parametrize("world", [0, 1])
def test_zeros_are_the_shipped_agent(rounds, world):
    plan = WorldPlan(seed=training_seed(5, world), days=(12,), levels=3, seats=2)
    training_world = draw_world(plan)
    shipped = FastWorld(training_world.with_ours(SHIPPED), defaults="native")
    shipped.run()
    steered = play_world(plan, PolicySet(), DayWeights(), None, rounds=rounds)
    expected = list(shipped.scores().values())
    assert [seat.score for seat in steered.seats] == [expected[seat] for seat in training_world.seats]


class Random:
    """A policy of random residuals."""

    def __init__(self, deviation):
        self.rng, self.deviation = np.random.default_rng(0), deviation

    def act_days(self, requests):
        return self.rng.normal(0, self.deviation, (len(requests.seats), 12)).astype(np.float32)

    def act_rounds(self, requests):
        return self.rng.normal(0, self.deviation, (len(requests.seat), 4)).astype(np.float32)


def test_whatever_the_residuals_are_what_leaves_the_agent_is_legal(monkeypatch):
    replies = []
    original = LockstepAgent.counter_all

    def listening(self, offers, states):
        answers = original(self, offers, states)
        replies.append((self._today, self.awi, dict(offers), answers))
        return answers

    monkeypatch.setattr(LockstepAgent, "counter_all", listening)
    for world, deviation in enumerate((0.5, 1.0, 3.0)):

        def make_layers(seats, deviation=deviation):
            layers = PolicyLayers(Random(deviation), len(seats))
            return LayerSet(layers, layers, layers)

        lockstep = Lockstep(make_layers)
        [played] = lockstep.add([draw_world(WorldPlan(seed=training_seed(6, world), days=(6,), levels=3, seats=2))])
        lockstep.run()
        assert not played.errors
    made = 0
    for day, awi, offers, answers in replies:
        for partner, answer in answers.items():
            if answer.response == ResponseType.REJECT_OFFER:
                agenda = day.buy_agenda if partner in awi.my_suppliers else day.sell_agenda
                assert agenda.legal(Offer(*answer.outcome))
                made += 1
        sold = sum(
            offer[0]
            for partner, offer in offers.items()
            if answers[partner].response == ResponseType.ACCEPT_OFFER and partner in awi.my_consumers
        )
        assert sold <= day.n_lines * (day.horizon + 1)
    assert made > 100


GOALS = Goals((5, 1, 0, 0), (11.0,) * 4, (5, 5, 5, 5), (18.0,) * 4, (1.0,) * 4, 8.0)


class Days:
    """Two days of a factory, as far as L2's residual reads them; the second trades nothing."""

    seats = np.array([0, 1])

    class obs:  # noqa: N801 - stands for a value
        n_lines, stock_in, exogenous_in = np.array([10, 10]), np.array([1, 1]), np.array([0, 0])
        exogenous_out, horizon = np.array([0, 0]), np.array([3, 3])
        trades = np.array([[True, True], [False, False]])
        agenda = np.array([[[1, 30, 0, 3, 9, 11], [1, 30, 0, 3, 18, 22]]] * 2)

    class calendar:  # noqa: N801 - stands for a value
        sold, bought = np.array([[4, 0, 0, 0]] * 2), np.zeros((2, 4), np.int64)

    bounds = BoundsBatch(*(np.full((2, 4), 9) for _ in range(3)), np.array([9, 9]))


def shifted(**action):
    vector = np.array([action.get(name, 0.0) for name in DAY_ACTIONS], np.float32)
    goals = stacked([GOALS, GOALS], 4)
    whole = replace(goals, q_buy=goals.q_buy.astype(np.int64), q_sell=goals.q_sell.astype(np.int64))
    moved = shift_goals(whole, Days, np.stack([vector, vector]))
    idle = moved.row(1, 4)
    assert (idle.q_buy, idle.p_buy, idle.q_sell, idle.p_sell) == (GOALS.q_buy, GOALS.p_buy, GOALS.q_sell, GOALS.p_sell)
    return moved.row(0, 4)


def test_actions_shift_the_goals_that_they_name():
    assert shifted() == GOALS
    assert shifted(sell_quantity_near=1.0).q_sell == (5, 8, 8, 5)
    assert shifted(sell_quantity_far=3.0).q_sell == (5, 5, 5, 9)  # not beyond the lines
    assert shifted(sell_quantity_today=-3.0).q_sell == (0, 5, 5, 5)
    assert shifted(sell_price_today=1.0).p_sell == (20.0, 18.0, 18.0, 18.0)
    assert shifted(sell_price_today=0.2).p_sell == (18.0, 18.0, 18.0, 18.0)  # less than half a price is none
    assert shifted(sell_price_far=3.0).p_sell == (18.0, 18.0, 18.0, 22.0)  # not beyond the band
    assert shifted(buy_quantity_today=1.0).q_buy == (6, 1, 0, 0)  # 3 are due today, 2 are for stock
    assert shifted(buy_quantity_today=3.0).q_buy == (9, 1, 0, 0)  # not beyond the bound
    assert shifted(buy_quantity_today=-3.0, buy_quantity_later=-3.0).q_buy == (3, 0, 0, 0)
    assert shifted(buy_quantity_later=2.0).q_buy == (5, 3, 0, 0)  # where nothing is wanted, nothing is bought
    assert shifted(buy_price_later=1.0).p_buy == (11.0, 10.0, 10.0, 10.0)  # good for us is cheaper
    assert shifted(hold=2.0).hold == pytest.approx((2.718281828,) * 4)
    assert shifted(unit_value=-2.0).unit_value == pytest.approx(8 / 2.718281828)


def test_actions_are_finite_and_clipped():
    with pytest.raises(ValueError, match="not finite"):
        clipped(np.array([0.0, np.nan], np.float32))
    assert clipped(np.array([9.0, -9.0], np.float32)).tolist() == [3.0, -3.0]
    assert not SteeredLayers(2).days.any()
