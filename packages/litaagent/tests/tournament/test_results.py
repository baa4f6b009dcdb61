"""Results: the official metric, levels, intervals and pairs, checked by hand."""

import csv
import json

import numpy as np
import pytest
from negmas.helpers.numeric import truncated_mean as official_mean

from apexrl.statistics import truncated_mean
from litaagent_std.records.reader import open_records
from litaagent_std.tournament.export import export_logs
from litaagent_std.tournament.standings import results_of


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
