"""The page of the benchmarks has the figures of the result files, and lists the benchmarks without a result."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def figures(docs_extension):
    return docs_extension("benchmark_figures")


@pytest.fixture
def folder(tmp_path):
    """Three benchmarks: one with a full result, one with a part of it, one with a quick result only; a pinned file."""
    (tmp_path / "results").mkdir()
    for name in ("full", "part", "hasty_one"):
        (tmp_path / f"{name}.py").write_text(
            f'"""Measures {name}|pipes.\n\nMore."""\nbench = Benchmark("{name}", "")\n'
        )
    (tmp_path / "harness.py").write_text('"""The frame."""\nclass Benchmark: ...\nBenchmark()\n')
    (tmp_path / "library.py").write_text('"""No benchmark."""\n')
    common = {"commit": "abc", "seeds": [1, 2], "machine": {"cpu": "Quick One", "cores": "2", "python": "3.11"}}
    good = {"name": "speed_a", "value": 12.3456, "unit": "x", "op": ">=", "goal": 2.0, "note": "5 | 6", "ok": True}
    bad = good | {"name": "size", "value": 1.0, "ok": False}
    plain = good | {"name": "days", "value": 70_000.4, "goal": None, "unit": ""}
    none = good | {"name": "later", "value": None, "ok": False}
    for name, rows in (("full", [good, bad, plain]), ("part", [good, none]), ("hasty_one.quick", [good])):
        command = f"make bench-{name}"
        (tmp_path / f"results/{name}.json").write_text(json.dumps(common | {"command": command, "figures": rows}))
    (tmp_path / "results/golden.json").write_text(json.dumps({"worlds": []}))
    return tmp_path


def test_figures_met_missed_and_missing_are_listed(figures, folder):
    text = figures.markdown(folder)
    assert "| `make bench-full` | Measures full\\|pipes. | 1 of 2 goals met |" in text
    assert "1 of 1 goals met; **1 of 2 figures not computed yet**" in text
    assert "| `make bench-hasty-one` | Measures hasty\\_one\\|pipes. | **not run in full yet** |" in text
    assert "| speed\\_a | 12.35 x | \\>= 2 x | met | 5 \\| 6 |" in text
    assert "| size | 1 x | \\>= 2 x | **missed** |" in text
    assert "| days | 70,000 | – |  |" in text
    assert "| later | not computed yet | \\>= 2 x |  |" in text
    assert "bench-library" not in text
    assert "bench-harness" not in text
    assert "### hasty" not in text
    assert "golden" not in text


def test_every_benchmark_and_every_figure_of_the_repository_is_listed(figures):
    text = figures.markdown(ROOT / "benchmarks")
    for path in (ROOT / "benchmarks/results").glob("*.json"):
        result = json.loads(path.read_text())
        if path.stem.endswith(".quick") or "figures" not in result:
            continue
        section = re.search(rf"^### {path.stem}$(.*?)(?=^### |\Z)", text, re.MULTILINE | re.DOTALL)[1]
        assert section.count("\n| ") == len(result["figures"]) + 1  # and the head
    names = figures.benchmark_names(ROOT / "benchmarks")
    assert {"world", "strength", "engine", "hmasd", "dashboard"} <= set(names)
    assert all(f"`make bench-{name.replace('_', '-')}`" in text for name in names)


def test_the_file_is_written_only_if_it_changed(figures, folder, tmp_path):
    target = tmp_path / "page/benchmarks.md"
    figures.write(target, folder)
    before = target.stat().st_mtime_ns
    figures.write(target, folder)
    assert target.stat().st_mtime_ns == before
    (folder / "results/full.json").unlink()
    figures.write(target, folder)
    assert "bench-full` | Measures full\\|pipes. | **not run in full yet**" in target.read_text()
