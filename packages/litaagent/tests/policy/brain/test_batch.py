"""A batch of factories decides as each of them alone, in all their rounds."""

import numpy as np
import pytest

from litaagent_std.policy.brain import BatchBrain, Brain
from litaagent_std.policy.brain.reasons import decision_of
from litaagent_std.policy.columns import CalendarBatch, ObservationBatch, live_threads
from litaagent_std.policy.layers import Layers
from litaagent_std.policy.parameters import Parameters
from litaagent_std.policy.partners.types import shipped_types
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec, official_setup

AGENT = "litaagent_std.agents.hrl.LitaAgentHRL"
PARAMETERS = [Parameters(risk_budget=0.05 + 0.05 * seat, hold=0.2 + 0.1 * seat) for seat in range(5)]


@pytest.fixture(scope="module")
def rounds():
    """Days of five factories in two worlds: the observation, and the threads of each round."""
    seats, worlds = {}, []
    start_day, respond = Brain.start_day, Brain.respond

    def on_day(brain, obs):
        start_day(brain, obs)
        seats.setdefault(id(brain), []).append((obs, []))

    def on_round(brain, threads):
        seats[id(brain)][-1][1].append(list(threads))
        return respond(brain, threads)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Brain, "start_day", on_day)
        patch.setattr(Brain, "respond", on_round)
        for n_levels in (2, 3):
            setup = official_setup(n_levels, n_days=6, n_levels=n_levels)
            first = {factory.level: seat for seat, factory in reversed(list(enumerate(setup.factories)))}
            spec = AgentSpec(AGENT, competitor=True)
            worlds.append(FastWorld(setup.with_agents(dict.fromkeys(first.values(), spec)), [], defaults="native"))
            worlds[-1].run()
    return list(seats.values())


@pytest.mark.parametrize("layers", [Layers(), Layers(l3="model"), Layers(l3="baseline", l4="greedy")])
def test_a_batch_decides_as_its_members_alone(rounds, layers):
    alone = [Brain(parameters, layers) for parameters in PARAMETERS]
    together, compared = None, 0
    for day in range(6):
        observations = [days[day][0] for days in rounds]
        obs = ObservationBatch.of(observations)
        if together is None:
            together = BatchBrain(obs, PARAMETERS, layers, types=shipped_types())
        together.start_day(obs)
        for brain, observation in zip(alone, observations, strict=True):
            brain.start_day(observation)
        for step in range(max(len(days[day][1]) for days in rounds)):
            asked = [seat for seat, days in enumerate(rounds) if step < len(days[day][1])]
            threads = [thread for seat in asked for thread in rounds[seat][day][1][step]]
            places = [place for place, seat in enumerate(asked) for _ in rounds[seat][day][1][step]]
            batch = live_threads(threads, [observations[seat] for seat in asked], places)
            calendar = CalendarBatch.of([rounds[seat][day][1][step][0].calendar for seat in asked])
            plan = together.decide(batch, calendar, np.array(asked))
            expected = {seat: alone[seat].respond(rounds[seat][day][1][step]) for seat in asked}
            for row, (thread, place) in enumerate(zip(threads, places, strict=True)):
                assert decision_of(plan, row, thread.offer) == expected[asked[place]][thread.partner], thread
                compared += 1
        for brain, days in zip(alone, rounds, strict=True):
            brain.end_day(days[day][0].calendar)
        together.memory.note_due(obs.calendar.bought[:, 0], obs.calendar.sold[:, 0])
    assert compared > 200
