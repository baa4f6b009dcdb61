"""The search finds an optimum by ranks, leaves global luck alone, and is rebuilt from its log."""

import json

import numpy as np
import pytest

from apexrl.runs.errors import RunDirError
from litaagent_std.arena.tuning.search import Search


def ranks_of(points, target=0.7):
    order = np.argsort([sum((value - target) ** 2 for value in point) for point in points])
    return [int(rank) for rank in np.argsort(order)]


def advance(search, generations):
    log = []
    for _ in range(generations):
        points = search.ask()
        log.append({"step": search.generation, "points": points, "ranks": ranks_of(points)})
        search.tell(log[-1]["ranks"])
    return log


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
@pytest.mark.parametrize("origin", [[0.2], [0.0, 1.0, 0.5]])
def test_it_finds_an_optimum_by_ranks_alone(origin, covariance):
    search = Search(origin, 0.2, covariance=covariance)
    assert search.center == pytest.approx(origin, abs=1e-3)
    advance(search, 40)
    assert search.center == pytest.approx([0.7] * len(origin), abs=0.05)


def test_points_stay_in_the_box_and_global_luck_stays_as_it_is():
    before = np.random.get_state()[1].tolist()
    points = [value for entry in advance(Search([0.0, 1.0], 0.5), 10) for point in entry["points"] for value in point]
    assert 0.0 <= min(points) < max(points) <= 1.0
    assert np.random.get_state()[1].tolist() == before


def test_a_replayed_search_goes_on_as_if_it_had_not_stopped():
    whole = Search([0.2, 0.4], 0.2, seed=3)
    log = json.loads(json.dumps(advance(whole, 8)))
    resumed = Search([0.2, 0.4], 0.2, seed=3)
    resumed.ask()  # a question that was never answered changes nothing
    for entry in log[:5]:
        resumed.replay(entry)
    assert advance(resumed, 3) == log[5:]
    assert resumed.center == whole.center


def test_the_log_of_another_search_is_refused():
    [entry] = advance(Search([0.2, 0.4], 0.2, seed=3), 1)
    with pytest.raises(RunDirError, match="not generation 0 of this search"):
        Search([0.2, 0.4], 0.2, seed=4).replay(entry)
