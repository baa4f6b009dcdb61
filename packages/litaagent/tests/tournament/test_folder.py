"""What identifies a tournament, and which folder it is resumed in."""

import json
from pathlib import Path

import pytest

from apexrl.runs.errors import ConfigMismatchError, RunDirError, RunLockedError
from apexrl.runs.run_dir import RunDir
from litaagent_std.agents.explain import from_tournament
from litaagent_std.records.reader import open_records
from litaagent_std.records.storage.segment import pack_failure
from litaagent_std.records.storage.store import RecordStore
from litaagent_std.tournament.competitors.integer_offers import FORMER_PREFIX, integer_path
from litaagent_std.tournament.competitors.names import resolve
from litaagent_std.tournament.config import FREE, TournamentConfig
from litaagent_std.tournament.folder import choose_folder, is_finished, what_is_played
from litaagent_std.tournament.run import run_tournament

pytestmark = pytest.mark.filterwarnings("ignore::litaagent_std.world.reproducible.hashing.UnstableHashingWarning")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def started(folder, played, finished=False):
    """A tournament of one world, begun or finished."""
    with RunDir.start(folder, config={"played": played, "how": {}}, seed=0, free=("how",)):
        store = RecordStore(folder / "records", {"played": played}, 1)
        if finished:
            store.add(0, pack_failure(0, "hung"))


def test_the_newest_unfinished_folder_of_the_same_tournament_is_resumed(tmp_path):
    played, config = {"seed": 1}, TournamentConfig()
    first = choose_folder(config, played, "hrl_data")
    assert first.reason == "a new one"
    assert first.folder.name.startswith("hrl_data_")
    assert first.folder.name.endswith("_std")
    history = tmp_path / "tournament_history"
    started(history / "hrl_data_20260101_000000_000000_std", played)
    started(history / "hrl_data_20260102_000000_000000_std", played)
    started(history / "hrl_data_20260103_000000_000000_std", played, finished=True)
    started(history / "hrl_data_20260104_000000_000000_std", {"seed": 2})
    (history / "hrl_data_20260105_000000_000000_std").mkdir()
    chosen = choose_folder(config, played, "hrl_data")
    assert chosen.folder.name == "hrl_data_20260102_000000_000000_std"
    assert "--fresh" in chosen.reason
    assert choose_folder(TournamentConfig(fresh=True), played, "hrl_data").reason == "a new one"
    assert choose_folder(config, played, "std_default").reason == "a new one"
    named = TournamentConfig(output_dir=tmp_path / "here")
    assert choose_folder(named, played, "hrl_data").folder == tmp_path / "here"


def test_a_folder_without_records_is_not_finished(tmp_path):
    assert not is_finished(tmp_path)


def tiny(**options):
    base = {"competitors": ("RandomStd",), "configs": 1, "runs": 1, "steps": 5, "levels": 2, "executor": "inline"}
    return TournamentConfig(**base | {"output_dir": "here", "csv": False} | options)


def test_finished_changed_and_busy_folders(capsys):
    first = run_tournament(tiny())
    assert (first.finished, first.worlds) == (True, 1)
    assert "1 configurations x 1 runs x 1 worlds each = 1 worlds" in capsys.readouterr().out
    again = run_tournament(tiny(engine="scml", workers=3))
    assert (again.finished, again.worlds) == (True, 0)
    assert "is finished: all 1 worlds" in capsys.readouterr().out
    assert again.results == first.results
    with pytest.raises(ConfigMismatchError, match=r"played\.steps: 5 -> 6"):
        run_tournament(tiny(steps=6))
    with pytest.raises(RunDirError, match="already holds a run"):
        run_tournament(tiny(resumable=False))
    with (
        RunDir.start("busy", config={"played": {}}, seed=0),
        pytest.raises(RunLockedError, match="being written by"),
    ):
        run_tournament(tiny(output_dir="busy"))


def test_competitors_with_parameters_have_names_of_their_own_and_are_replayed(tmp_path):
    (tmp_path / "mine.json").write_text('{"hold": 0.25}')
    competitors = ("lita", 'lita:{"l4": "greedy", "parameters": "mine.json"}')
    names = ["lita", 'lita{"l4": "greedy", "parameters": "mine.json"}']
    outcome = run_tournament(tiny(competitors=competitors, output_dir="params"))
    assert sorted(standing.competitor for standing in outcome.results.standings) == names
    (tmp_path / "mine.json").unlink()  # the record holds its content
    records = open_records("params")
    record = records.world(records.keys[0])
    params = {row["competitor"]: json.loads(row["params"]) for row in record.factories if row["competitor"]}
    assert params[names[1]] == {"l4": "greedy", "parameters": {"hold": 0.25}}
    replay = from_tournament(Path("params"), 0)
    assert replay.setup.digest == record.facts["setup_digest"]
    assert {agent.params.get("l4") for agent in replay.setup.agents if agent.competitor} == {None, "greedy"}


def test_a_tournament_of_an_earlier_release_is_resumed_and_replayed(tmp_path):
    config = tiny(competitors=("int:RandomStd",), output_dir="old")
    present, former = integer_path("a").removesuffix("a"), FORMER_PREFIX
    [competitor] = resolve(config.competitors)
    played = what_is_played(config, [competitor])
    played["competitors"] = [competitor.path.replace(present, former)]
    settings = {"played": played, "how": {name: getattr(config, name) for name in FREE if name != "output_dir"}}
    with RunDir.start("old", config=settings, seed=0, free=("how",)):
        RecordStore(tmp_path / "old" / "records", {"names": [competitor.name], "played": played}, 1)
    assert run_tournament(config).finished
    replay = from_tournament(Path("old"), 0)
    assert competitor.path in {agent.path for agent in replay.setup.agents}
