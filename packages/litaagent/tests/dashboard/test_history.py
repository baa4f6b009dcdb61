"""Names from addresses stay inside the folder."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litaagent_std.dashboard.history import History, NotHereError


def test_everything_is_found(recorded):
    found = {(item.kind, item.name.split("/")[0]) for item in History(recorded).items()}
    assert found == {
        ("tournament", "tournament_history"),
        ("arena", "arena_results"),
        ("training", "runs"),
        ("hmasd", "hmasd"),
    }


def test_the_folder_itself_may_be_the_item(recorded):
    [item] = History(recorded / "tournament_history/small").items()
    assert (item.kind, item.name) == ("tournament", ".")


def test_an_empty_or_missing_folder_has_nothing(tmp_path):
    assert History(tmp_path).items() == []
    assert History(tmp_path / "none").items() == []


@pytest.mark.parametrize(
    "name",
    ["../outside", "inside/../../outside", "/etc", "", "..", "\0", "x" * 5000, "link", "%2e%2e/outside", "inside\n"],
)
def test_names_that_lead_elsewhere_are_refused(recorded, tmp_path, name):
    for folder in ("inside", "outside"):
        os.symlink(recorded / "tournament_history/small/records", tmp_path / f"{folder}_records")
        (tmp_path / folder).mkdir()
    (tmp_path / "outside/metrics.jsonl").touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / "inside").mkdir()
    (root / "inside/metrics.jsonl").touch()
    os.symlink(tmp_path / "outside", root / "link")
    history = History(root)
    assert history.find("training", "inside") == root / "inside"
    with pytest.raises(NotHereError, match="inside the one that is served"):
        history.find("training", name)
    assert [item.name for item in history.items()] == ["inside"]


@given(st.text())
def test_no_name_leads_out(name):
    history = History(Path(__file__).parent)
    with pytest.raises(NotHereError):
        history.find("tournament", name)


def test_a_folder_of_another_kind_is_refused(recorded):
    with pytest.raises(NotHereError):
        History(recorded).find("training", "tournament_history/small")
