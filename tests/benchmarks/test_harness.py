"""The benchmark frame: figures beside goals, an honest exit status, units that are never computed twice."""

import json
from pathlib import Path

import pytest
from benchmarks.harness import Benchmark, Figure

from benchmarks import harness


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return tmp_path


def test_met_goals_exit_0_and_are_written(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Benchmark("speed", "How fast.", seeds=range(2), argv=[])
    figures = [Figure(name="ratio", value=2.5, unit="x", op=">=", goal=2.0), Figure(name="share", value=0.2)]
    assert bench.finish(figures) == 0
    record = json.loads((results / "speed.json").read_text())
    assert record["command"] == "make bench-speed"
    assert record["seeds"] == [0, 1]
    assert record["commit"]
    assert record["machine"]["cores"]
    expected = {"name": "ratio", "value": 2.5, "unit": "x", "op": ">=", "goal": 2.0, "ok": True}
    assert expected.items() <= record["figures"][0].items()
    assert "ratio" in capsys.readouterr().out


@pytest.mark.parametrize("value", [1.9, float("nan")])
def test_a_missed_goal_exits_1_and_is_named(value: float, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Benchmark("speed", "How fast.", argv=[])
    assert bench.finish([Figure(name="ratio", value=value, goal=2.0)]) == 1
    assert "ratio" in capsys.readouterr().err


def test_a_finished_unit_is_read_and_a_changed_one_computed() -> None:
    calls: list[int] = []

    def work(seed: int) -> dict[str, int]:
        calls.append(seed)
        return {"square": seed * seed}

    bench = Benchmark("speed", "How fast.", argv=[])
    assert [bench.unit("u", work, seed=3)["square"] for _ in range(2)] == [9, 9]
    assert calls == [3]
    assert bench.unit("u", work, seed=4)["square"] == 16
    assert Benchmark("speed", "How fast.", argv=["--fresh"]).unit("u", work, seed=4)["square"] == 16
    assert calls == [3, 4, 4]


def test_quick_results_are_kept_apart(results: Path) -> None:
    bench = Benchmark("speed", "How fast.", argv=["--quick"])
    bench.unit("u", lambda: {"x": 1})
    bench.finish([])
    assert (results / "speed.quick.json").exists()
    assert not (results / "speed.json").exists()
    assert Benchmark("speed", "How fast.", argv=[]).finished("u") is None
