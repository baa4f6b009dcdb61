import numpy as np
import pytest
from negmas import ResponseType

from litaagent_std.hrl_xf.online.envs.layers import ROUND_ACTION_SIZE
from litaagent_std.hrl_xf.online.envs.steering import DAY_ACTIONS, SteeredLayers, clipped
from litaagent_std.hrl_xf.online.lockstep import Lockstep, LockstepAgent
from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed
from litaagent_std.policy.layers import LayerSet
from litaagent_std.policy.observation import Offer
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec

HEURISTIC = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL", {"l2": "heuristic"})


def test_zeros_are_the_heuristic_agent():
    plan = WorldPlan(seed=training_seed(5, 0), days=(10,), levels=3, seats=2)
    training_world = draw_world(plan)
    shipped = FastWorld(training_world.with_ours(HEURISTIC), defaults="native")
    shipped.run()

    def make_layers(seats):
        layers = RandomLayers(len(seats), 0.0)
        return LayerSet(layers, layers, layers)

    lockstep = Lockstep(make_layers)
    [played] = lockstep.add([training_world])
    lockstep.run()
    expected = list(shipped.scores().values())
    assert [played.score(seat.seat) for seat in played.ours] == [expected[seat] for seat in training_world.seats]


class RandomLayers(SteeredLayers):
    """Layers with random residuals."""

    def __init__(self, seats, deviation):
        super().__init__(seats)
        self.rng, self.deviation = np.random.default_rng(0), deviation

    def goals_of(self, day):
        shape = (len(day.seats), len(DAY_ACTIONS))
        self.days[day.seats] = self.rng.normal(0, self.deviation, shape)
        return super().goals_of(day)

    def start_round(self, round_batch):
        shape = (len(round_batch.threads), ROUND_ACTION_SIZE)
        self.threads = self.rng.normal(0, self.deviation, shape).astype(np.float32)


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
            layers = RandomLayers(len(seats), deviation)
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


def test_actions_are_finite_and_clipped():
    with pytest.raises(ValueError, match="not finite"):
        clipped(np.array([0.0, np.nan], np.float32))
    assert clipped(np.array([9.0, -9.0], np.float32)).tolist() == [3.0, -3.0]
    assert not SteeredLayers(2).days.any()
