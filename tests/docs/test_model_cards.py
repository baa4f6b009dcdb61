"""Every shipped file of weights or parameters has a card, and there are no other cards."""

import json
from pathlib import Path

import pytest

from litaagent_std.policy.parameters import Parameters, tunable
from litaagent_std.policy.partners import types
from litaagent_std.tournament.competitors.parameter_files import SHIPPED


@pytest.fixture(scope="module")
def cards(docs_extension):
    return docs_extension("model_cards")


@pytest.fixture
def source(tmp_path):
    (tmp_path / "litaagent_std/arena/tuned").mkdir(parents=True)
    (tmp_path / "litaagent_std/weights").mkdir()
    return tmp_path


TUNED = {
    "command": "lita tune --days 50",
    "commit": "abc",
    "seeds": {"search": 7, "worlds": "tuning"},
    "levels": {"first": {"kept": True}, "last": {"kept": False}},
    "gate": {
        "block": "gate:one",
        "comparisons": [
            {
                "against": "lita",
                "verdict": {"mean": 0.02, "low": 0.01, "high": None, "worlds": 300, "answer": "better"},
            }
        ],
    },
}


def test_everything_that_is_shipped_has_a_card(cards):
    text = cards.markdown(cards.SOURCE)
    tuned = list(SHIPPED.glob("*.json"))
    weights = [path for path in cards.SOURCE.rglob("*") if path.suffix in cards.WEIGHTS]
    assert Path(types.SHIPPED) in weights
    assert text.count("### `") == len(tuned) + len(weights)
    for path in (*tuned, *weights):
        assert f"### `{path.relative_to(cards.SOURCE).as_posix()}`" in text
    assert ("No learned weights are shipped" in text) == (not weights)
    assert ("No tuned parameters are shipped" in text) == (not tuned)


def test_the_page_lists_the_parameters_that_the_agent_finds(cards):
    assert {path for path in cards.shipped_files(cards.SOURCE) if path.suffix == ".json"} == set(SHIPPED.glob("*.json"))


def test_a_card_of_tuned_parameters_has_origin_and_gate(cards, source):
    path = source / "litaagent_std/arena/tuned/better.json"
    path.write_text(json.dumps(TUNED))
    text = cards.markdown(source)
    assert "| made by | `lita tune --days 50` |" in text
    assert "| seed | 7 |" in text
    assert "| levels changed | first |" in text
    assert "on gate:one: minus lita: +0.020 (+0.010 … open at any time, 95 %), 300 worlds, better" in text
    assert "No tuned parameters" not in text
    path.write_text(json.dumps(TUNED | {"gate": None}))
    assert "**not evaluated by a gate**" in cards.markdown(source)
    path.write_text(json.dumps({"parameters": {}}))
    with pytest.raises(cards.CardError, match=r"better.json lacks command, commit"):
        cards.markdown(source)


def test_weights_without_a_complete_card_fail_the_build(cards, source):
    (source / "litaagent_std/weights/l3.npz").write_bytes(b"")
    with pytest.raises(cards.CardError, match=r"write l3.card.json beside it with command, seed"):
        cards.markdown(source)
    card = {key: "said | so" for key in cards.CARD} | {"seed": 0}
    beside = source / "litaagent_std/weights/l3.card.json"
    beside.write_text(json.dumps(card | {"measured": ""}))
    with pytest.raises(cards.CardError, match="lacks measured"):
        cards.markdown(source)
    beside.write_text(json.dumps(card))
    text = cards.markdown(source)
    assert "### `litaagent_std/weights/l3.npz`" in text
    assert "| limits | said / so |" in text
    assert "| seed | 0 |" in text
    assert "No learned weights" not in text


def test_parameter_values_are_those_of_the_agent(cards):
    text = cards.parameter_values()
    assert text.count("\n| `") == len(tunable())
    assert f"| `hold` | {Parameters().hold:g} |" in text
