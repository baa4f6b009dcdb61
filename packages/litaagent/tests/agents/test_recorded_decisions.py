"""Without learned layers the agent decides as it did when the log beside this file was recorded."""

import json
from pathlib import Path

import pytest

from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.reproducible.hashing import is_fixed
from litaagent_std.world.setup import AgentSpec, official_setup

RECORDED = json.loads(Path(__file__).with_name("recorded_decisions.json").read_text(encoding="utf-8"))
PATH = "litaagent_std.agents.hrl.LitaAgentHRL"


def play(l3, l4, inventory):
    """The decisions of one agent at every level of a small world; parameters are the recorded ones."""
    setup = official_setup(3, n_days=8, n_levels=3)
    first = {}
    for seat, factory in enumerate(setup.factories):
        first.setdefault(factory.level, seat)
    parameters = {"urgency_high": 0.0, **RECORDED["parameters"]}  # recorded before there was urgency
    params = {"parameters": parameters, "l2": "heuristic", "l3": l3, "l4": l4, "keep_log": True}
    setup = setup.with_agents({seat: AgentSpec(PATH, params, competitor=True) for seat in first.values()})
    world = FastWorld(setup, [], inventory=inventory)
    world.run()
    return [
        [
            [r.day, r.round, r.partner, r.received, r.decision.kind, r.decision.offer]
            for r in world.seats[seat].agent.brain.log
        ]
        for seat in first.values()
    ]


@pytest.mark.skipif(not is_fixed(), reason="default agents repeat only under PYTHONHASHSEED=0, which make test sets")
@pytest.mark.parametrize("version", RECORDED["decisions"])
def test_decisions_are_those_of_the_record(version):
    l3, l4, inventory = version.split("-")
    made = json.loads(json.dumps(play(l3, l4, inventory)))
    for level, (now, before) in enumerate(zip(made, RECORDED["decisions"][version], strict=True)):
        assert len(before) > 30
        for one, other in zip(now, before, strict=False):
            assert one == other, f"level {level}"
        assert len(now) == len(before)
