import numpy as np
import pytest
from negmas import ResponseType

from litaagent_std.agents.online.acting import PolicySet
from litaagent_std.agents.online.steering import DAY_ACTIONS, Residuals, clipped, shift_goals
from litaagent_std.hrl_xf.online.envs.game import Game, SteeredAgent
from litaagent_std.hrl_xf.online.rollout import play_world
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.hrl_xf.rewards import DayWeights
from litaagent_std.policy.observation import Calendar, Offer
from litaagent_std.policy.plan import Bounds, Goals
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


def test_whatever_the_residuals_are_what_leaves_the_agent_is_legal(monkeypatch):
    replies = []
    original = SteeredAgent.counter_all

    def listening(self, offers, states):
        answers = original(self, offers, states)
        replies.append((self._today, self.awi, dict(offers), answers))
        return answers

    monkeypatch.setattr(SteeredAgent, "counter_all", listening)
    rng = np.random.default_rng(0)
    for world, deviation in enumerate((0.5, 1.0, 3.0)):
        with Game(
            draw_world(WorldPlan(seed=training_seed(6, world), days=(6,), levels=3, seats=2)), rounds=True
        ) as game:
            while game.pending is not None:
                game.step(rng.normal(0, deviation, game.pending.action_shape).astype(np.float32))
            assert not game.errors
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


def goals():
    return Goals((5, 1, 0, 0), (11.0,) * 4, (5, 5, 5, 5), (18.0,) * 4, (1.0,) * 4, 8.0)


class Day:
    n_lines, stock_in, exogenous_in, exogenous_out = 10, 1, 0, 0

    class buy_agenda:  # noqa: N801 - stands for a value
        price_min, price_max = 9, 11

    class sell_agenda:  # noqa: N801 - stands for a value
        price_min, price_max = 18, 22


def shifted(**action):
    vector = np.array([action.get(name, 0.0) for name in DAY_ACTIONS], np.float32)
    calendar = Calendar((0,) * 4, (0.0,) * 4, (4, 0, 0, 0), (0.0,) * 4)
    return shift_goals(goals(), Day, calendar, Bounds((9,) * 4, (9,) * 4, (9,) * 4, 9), vector)


def test_actions_shift_the_goals_that_they_name():
    assert shifted() == goals()
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
    assert clipped(np.array([9.0, -9.0], np.float32)) == [3.0, -3.0]
    assert not Residuals().day.any()
