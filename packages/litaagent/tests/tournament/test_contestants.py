"""Words of the command and the agents they stand for."""

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.tournament.competitors.contestants import contestants, opponents
from litaagent_std.tournament.competitors.integer_offers import integer_path

HORIZON = "scml_agents.scml2026.standard.team_21653.horizon_aware_agent.HorizonAwareAgent"


def test_names_paths_and_parameters():
    found = contestants(["lita", 'lita:{"l4": "greedy"}', "HorizonAwareAgent", "RandomStd"], integer_offers=True)
    assert [one.name for one in found] == ["lita", 'lita{"l4": "greedy"}', "HorizonAwareAgent", "RandomStdAgent"]
    assert found[1].spec.params == {"l4": "greedy"}
    assert found[1].spec.path == found[0].spec.path == "litaagent_std.agents.hrl.LitaAgentHRL"
    assert found[2].spec.path == integer_path(HORIZON)


def test_as_shipped_and_cast_beside_it():
    found = contestants([HORIZON, f"int:{HORIZON}"], integer_offers=False)
    assert [one.name for one in found] == ["HorizonAwareAgent", "int:HorizonAwareAgent"]
    assert [one.spec.path for one in found] == [HORIZON, integer_path(HORIZON)]


def test_opponents_come_from_groups_once_each():
    found = opponents(["finalists-2026", "HorizonAwareAgent"], integer_offers=True)
    assert integer_path(HORIZON) in found
    assert len(found) == len(set(found)) == 6


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["Nobody"], "no competitor 'Nobody'"),
        (["lita", "lita"], "there already"),
        (["lita:{l4}"], "no JSON"),
    ],
)
def test_what_stands_for_nothing_is_refused(words, told):
    with pytest.raises(ConfigurationError, match=told):
        contestants(words, integer_offers=True)


def test_opponents_have_no_parameters():
    with pytest.raises(ConfigurationError, match="parameters"):
        opponents(['RandomStd:{"a": 1}'], integer_offers=True)
