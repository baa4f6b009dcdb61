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


def test_some_units_are_computed_again() -> None:
    calls: list[str] = []

    def work(name: str) -> dict[str, str]:
        calls.append(name)
        return {"name": name}

    for argv in ([], ["--again", "tr"]):
        bench = Benchmark("speed", "How fast.", argv=argv)
        for name in ("train", "play", "train"):
            bench.unit(name, work, name=name)
    assert calls == ["train", "play", "train"]


def test_quick_results_are_kept_apart(results: Path) -> None:
    bench = Benchmark("speed", "How fast.", argv=["--quick"])
    bench.unit("u", lambda: {"x": 1})
    bench.finish([])
    assert (results / "speed.quick.json").exists()
    assert not (results / "speed.json").exists()
    assert Benchmark("speed", "How fast.", argv=[]).finished("u") is None


def test_units_are_lines_of_one_file_that_survives_a_kill(results: Path) -> None:
    bench = Benchmark("speed", "How fast.", argv=[])
    for seed in range(3):
        bench.unit(f"u{seed}", lambda seed: {"seed": seed}, seed=seed)
    path = results / "units" / "speed.jsonl"
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["u0", "u1", "u2"]
    path.write_bytes(path.read_bytes()[:-5])  # killed while it wrote the last line
    again = Benchmark("speed", "How fast.", argv=[])
    assert again.finished("u1", seed=1) == {"seed": 1}
    assert again.finished("u2", seed=2) is None
    again.unit("u2", lambda seed: {"seed": seed}, seed=2)
    assert Benchmark("speed", "How fast.", argv=[]).finished("u2", seed=2) == {"seed": 2}
    assert len(path.read_text().splitlines()) == 3


def test_the_last_line_of_a_key_counts_and_other_processes_are_seen() -> None:
    one, other = (Benchmark("speed", "How fast.", argv=[]) for _ in range(2))
    one.unit("u", lambda seed: {"seed": seed}, seed=1)
    assert other.finished("u", seed=1) == {"seed": 1}
    other.unit("u", lambda seed: {"seed": seed}, seed=2)
    assert one.finished("u", seed=1) is None
    assert one.finished("u", seed=2) == {"seed": 2}


def test_damage_inside_the_file_is_noticed(results: Path) -> None:
    bench = Benchmark("speed", "How fast.", argv=[])
    bench.unit("u", lambda: {"x": 1})
    path = results / "units" / "speed.jsonl"
    path.write_bytes(b"{broken}\n" + path.read_bytes())
    with pytest.raises(ValueError, match="damaged at byte 0"):
        Benchmark("speed", "How fast.", argv=[]).finished("u")


def test_the_result_names_the_commits_of_the_units_it_was_made_from(results: Path) -> None:
    earlier = Benchmark("speed", "", argv=[])
    for key in ("a", "b"):
        earlier.keep(key, {"n": 1}, {"x": 1}, commit="before")
    earlier.keep("stale", {"n": 1}, {"x": 1}, commit="long ago")
    bench = Benchmark("speed", "", argv=[])
    assert bench.finished("stale", n=2) is None, "it was computed from other arguments"
    bench.unit("a", lambda n: {"x": 2}, n=1)
    assert bench.kept("b") is not None
    bench.keep("c", {}, {"x": 3}, commit="now")
    bench.finish([])
    assert json.loads((results / "speed.json").read_text())["unit_commits"] == {"before": 2, "now": 1}
