import pytest

from litaagent_std.world.fast.roster import agent_name


@pytest.mark.parametrize(
    ("seat", "class_name", "level", "name"),
    [
        (0, "GreedyStdAgent", 0, "00Gr@0"),
        (7, "SyncRandomStdAgent", 1, "07SRS@1"),
        (12, "RandomStdAgent", 2, "12Ra@2"),
        (3, "AS0", 1, "03ASS0@1"),
        (4, "LitaAgentYR", 0, "04LYR@0"),
        (5, "A", 0, "05AAA@0"),
    ],
)
def test_ids_are_scmls(seat, class_name, level, name):
    assert agent_name(seat, class_name, level) == name
