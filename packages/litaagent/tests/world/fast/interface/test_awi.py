"""What agents see in the fast world is what they see in scml's."""

from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup


def test_the_interface_shows_what_scmls_shows(driven_agents):
    setup = official_setup(21, n_days=7, n_levels=3)
    levels = [factory.level for factory in setup.factories]
    seats = [levels.index(level) for level in range(3)]
    setup = setup.with_agents(dict.fromkeys(seats, AgentSpec("driven_agents.ExposingAgent")))
    notes = {}
    for engine in ("scml", "fast"):
        driven_agents.ExposingAgent.notes.clear()
        run_world(setup, engine)
        notes[engine] = list(driven_agents.ExposingAgent.notes)
    assert len(notes["scml"]) > 100
    for expected, seen in zip(notes["scml"], notes["fast"], strict=True):
        assert seen[:3] == expected[:3]
        if isinstance(expected[3], dict):
            for name, value in expected[3].items():
                assert seen[3].get(name) == value, (expected[:3], name)
        else:
            assert seen[3] == expected[3]
