"""Tuning runs: what they find, that a killed one ends like any other, and what they refuse."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from apexrl.runs.errors import ConfigMismatchError
from litaagent_std.arena import evaluation
from litaagent_std.arena.tuning import playing
from litaagent_std.arena.tuning.config import TuneConfig
from litaagent_std.arena.tuning.run import run_tuning
from litaagent_std.policy.parameters import Parameters
from litaagent_std.tournament.competitors.names import resolve

SMALL = {
    "levels": ("first", "middle"),
    "names": ("hold", "sell_curve"),
    "worlds": 4,
    "generations": 12,
    "validation_worlds": 20,
    "gate_worlds": 60,
    "opponents": ("built-in",),
    "executor": "inline",
    "quiet": True,
}


def pretended_level(rules, seed):
    return ("first", "middle", "last")[seed % 3]


def pretended_unit(rules, seed, agent):
    """At the first level the best hold is 0.9; at the middle one the start cannot be beaten."""
    level = pretended_level(rules, seed)
    here = Parameters.from_mapping(agent.params.get("parameters", {})).at(level)
    best = {"first": 0.9, "middle": 0.3, "last": 0.3}[level]
    noise = np.random.default_rng([seed, int(1000 * here.hold)]).normal(0, 0.01)
    score = 1.0 - (here.hold - best) ** 2 + noise - (0.5 if level == "middle" and here.hold != 0.3 else 0.0)
    numbers = dict.fromkeys(["sales", "purchases", "produced", "stock", "shortfall", "storage"], 1.0)
    counts = {"shortfall_units": 0, "bankruptcies": 1, "bankrupt_on": None, "n_errors": 0, "interventions": None}
    cpu = dict.fromkeys(["decision_ms", "longest_decision_ms", "day_ms", "world_seconds"], 0.5)
    return {"score": float(score), **numbers, **counts, "level": level, "n_days": 50, "errors": [], "cpu": cpu}


@pytest.fixture
def pretended(monkeypatch):
    """Worlds are pretended by a formula."""
    monkeypatch.setattr(playing, "play_unit", pretended_unit)
    monkeypatch.setattr(playing, "level_of", pretended_level)
    monkeypatch.setattr(evaluation, "play_unit", pretended_unit)


def test_it_finds_what_is_better_and_keeps_nothing_else(pretended, tmp_path):
    tuned = run_tuning(TuneConfig(**SMALL, output_dir=tmp_path))
    content = tuned.content
    assert content["levels"]["first"]["kept"]
    assert not content["levels"]["middle"]["kept"]
    parameters = Parameters.from_mapping(content["parameters"])
    assert parameters.at("first").hold == pytest.approx(0.9, abs=0.1)
    assert parameters.at("middle") == parameters.at("last") == Parameters()
    [row] = content["gate"]["comparisons"]
    assert row["verdict"]["answer"] == "better"
    assert set(row["difference"]) == {"all", "first", "middle", "last", "50 days"}
    [loaded] = resolve([f'lita:{{"parameters": "{tuned.path}"}}'], integer_offers=True)
    assert loaded.spec.params["parameters"] == content["parameters"]


def test_more_generations_continue_the_same_search(pretended, tmp_path):
    config = {**SMALL, "levels": ("first",)}
    run_tuning(TuneConfig(**{**config, "generations": 4}, output_dir=tmp_path / "a"))
    longer = run_tuning(TuneConfig(**config, output_dir=tmp_path / "a"))
    whole = run_tuning(TuneConfig(**config, output_dir=tmp_path / "b"))
    assert longer.content == whole.content
    assert longer.played < whole.played
    assert run_tuning(TuneConfig(**config, output_dir=tmp_path / "b")).played == 0


def test_other_options_are_refused(pretended, tmp_path):
    config = {**SMALL, "levels": ("first",), "generations": 1}
    run_tuning(TuneConfig(**config, output_dir=tmp_path))
    with pytest.raises(ConfigMismatchError, match=r"options\.step: "):
        run_tuning(TuneConfig(**config, step=0.3, output_dir=tmp_path))


TINY = [
    *("tune", "--levels", "middle", "first", "--generations", "2", "--worlds", "2", "--rungs", "2", "--population"),
    *("4", "--names", "hold", "stock_target", "--days", "8", "--n-levels", "3", "--opponents", "built-in", "--quiet"),
    *("--validation-worlds", "2", "--gate-worlds", "3", "--executor", "inline", "--output-dir", "run"),
]


def start(folder):
    folder.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "lita.main", *TINY]
    return subprocess.Popen(
        words, cwd=folder, env={**os.environ, "PYTHONHASHSEED": "0"}, stdout=subprocess.PIPE, text=True
    )


def test_a_killed_run_ends_like_one_that_was_not_killed(tmp_path):
    whole, killed = start(tmp_path / "a"), start(tmp_path / "b")
    log = tmp_path / "b" / "run" / "units.jsonl"
    while killed.poll() is None and not (log.is_file() and log.read_text().count('"score"') >= 5):
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    resumed = start(tmp_path / "b")
    said = [resumed.communicate(timeout=250)[0], whole.communicate(timeout=250)[0]]
    assert resumed.returncode == whole.returncode == 0
    results = [(tmp_path / one / "run" / "parameters.json").read_bytes() for one in ("a", "b")]
    assert results[0] == results[1]
    assert json.loads(results[0])["format"] == "litaagent.parameters"
    assert said[0] != said[1]  # the resumed one played less
    for name in ("middle.jsonl", "first.jsonl"):
        assert (tmp_path / "a" / "run" / name).read_bytes() == (tmp_path / "b" / "run" / name).read_bytes()
