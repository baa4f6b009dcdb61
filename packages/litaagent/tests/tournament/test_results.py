"""Results: the official metric, levels, intervals and pairs, checked by hand."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from negmas.helpers.numeric import truncated_mean as official_mean

from apexrl.statistics import holm_adjusted, truncated_mean
from lita.main import main
from litaagent_std.records.reader import open_records
from litaagent_std.tournament.export import export_logs
from litaagent_std.tournament.standings import Paired, corrected, results_of


@pytest.mark.parametrize("seed", range(5))
def test_the_metric_is_the_officials(seed):
    draw = np.random.default_rng(seed)
    scores = np.concatenate([draw.normal(1, 0.2, 40), draw.normal(6, 1, 3), draw.normal(-6, 1, 3)])
    assert truncated_mean(scores) == pytest.approx(official_mean(scores), rel=1e-12)
    assert truncated_mean(scores) < scores.mean()


def test_standings_come_from_the_worlds(finished):
    records = open_records(finished / "inline")
    results = results_of(records)
    assert len(results.scores) == 6 * 3
    worlds = dict(records.worlds())
    for score in results.scores:
        factory = worlds[score.source, score.world].factories[score.factory]
        assert (factory["score"], factory["competitor"]) == (score.score, score.competitor)
        assert score.level == ("first" if factory["level"] == 0 else "last")
    for standing in results.standings:
        own = np.array([s.score for s in results.scores if s.competitor == standing.competitor])
        assert standing.worlds == len(own) == 6
        assert standing.score == truncated_mean(own)
        assert standing.low <= standing.score <= standing.high
        first = [s.score for s in results.scores if (s.competitor, s.level) == (standing.competitor, "first")]
        assert standing.levels["first"] == pytest.approx(np.mean(first))
    assert [s.score for s in results.standings] == sorted((s.score for s in results.standings), reverse=True)


def test_pairs_compare_the_same_seats(finished):
    results = results_of(open_records(finished / "inline"))
    assert len(results.paired) == 3
    for pair in results.paired:
        by_seat = {
            name: {(s.config, s.run, s.factory): s.score for s in results.scores if s.competitor == name}
            for name in (pair.first, pair.second)
        }
        assert by_seat[pair.first].keys() == by_seat[pair.second].keys()
        gaps = [by_seat[pair.first][seat] - by_seat[pair.second][seat] for seat in by_seat[pair.first]]
        assert pair.pairs == len(gaps) == 6
        assert pair.difference == pytest.approx(np.mean(gaps))


def test_files_of_scores_say_the_same(finished):
    folder = finished / "inline"
    results = results_of(open_records(folder))
    rows = list(csv.DictReader((folder / "scores.csv").open()))
    assert [float(row["score"]) for row in rows] == [s.score for s in results.scores]
    written = json.loads((folder / "results.json").read_text())
    assert written == json.loads(json.dumps(results.to_plain()))


def test_logs_exported_later_are_those_written_at_once(finished, tree, tmp_path):
    records = open_records(finished / "inline")
    assert export_logs(records, tmp_path) == 6
    assert tree(tmp_path, "logs") == tree(finished / "inline", "logs")
    assert export_logs(records, tmp_path) == 0, "what is there is not written again"


def test_pairs_are_corrected_for_their_number(finished):
    results = results_of(open_records(finished / "inline"))
    assert [pair.p_holm for pair in results.paired] == pytest.approx(
        holm_adjusted([pair.p_value for pair in results.paired]).tolist()
    )
    plain = results.to_plain()["paired"]
    assert all(pair["p_value"] <= pair["p_holm"] for pair in plain)
    lone = Paired("a", "b", 1, 0.5, None, None)  # a single configuration has no p-value
    assert [pair.p_holm for pair in corrected([lone])] == [None]
    assert not lone.is_clear


def test_exceptions_of_agents_are_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    names = ("troubled_agents.AlwaysRaises", "RandomStd")
    words = ["--configs", "1", "--runs", "1", "--steps", "5", "--levels", "2", "--executor", "inline", "--no-csv"]
    assert main(["tournament", "--competitors", *names, *words, "--output-dir", str(tmp_path / "t")]) == 0
    printed = capsys.readouterr().out
    [broken] = [s for s in results_of(open_records(tmp_path / "t")).standings if s.competitor == "AlwaysRaises"]
    assert broken.errors > 10
    assert f"AlwaysRaises raised {broken.errors} exceptions in 2 worlds" in printed
