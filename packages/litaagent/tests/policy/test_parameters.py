from pathlib import Path

import pytest

from litaagent_std.policy.parameters import LEVELS, Parameters, as_markdown, level_name, tunable


def test_parameters_survive_json():
    tuned = Parameters(hold=0.25, overrides={"first": {"hold": 0.5}})
    assert Parameters.from_json(tuned.to_json()) == tuned


def test_a_level_applies_its_overrides_only():
    tuned = Parameters(hold=0.25, overrides={"first": {"hold": 0.5}})
    assert (tuned.at("first").hold, tuned.at("middle").hold) == (0.5, 0.25)


def test_every_tunable_default_lies_in_its_range():
    for name, (low, high) in tunable().items():
        assert low <= getattr(Parameters(), name) <= high
    assert len(tunable()) > 10


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hold": 1.5}, r"hold=1.5 is outside \[0.0, 1.0\]"),
        ({"holds": 0.5}, "unknown parameters"),
        ({"overrides": {"second": {}}}, "unknown level"),
        ({"overrides": {"first": {"holds": 1.0}}}, "unknown parameters"),
        ({"overrides": {"first": {"hold": 2.0}}}, "hold=2.0 is outside"),
    ],
)
def test_wrong_values_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Parameters.from_mapping(values)


def test_levels_have_names():
    assert [level_name(i, 3) for i in range(3)] == ["first", "middle", "last"]
    assert level_name(0, 1) == "last"


def test_the_documentation_lists_every_parameter():
    page = Path(__file__).parents[4] / "docs" / "league" / "agent.md"
    assert as_markdown() in page.read_text(encoding="utf-8"), f"the page's table must be:\n{as_markdown()}"
    assert as_markdown().count("\n") == len(tunable()) + 1


def test_without_risk_there_is_none_at_any_level():
    risky = Parameters(risk_budget=0.5, overrides={"last": {"risk_budget": 0.9, "hold": 0.5}})
    safe = risky.without_risk()
    assert [safe.at(level).risk_budget for level in LEVELS] == [0.0, 0.0, 0.0]
    assert safe.at("last").hold == 0.5
