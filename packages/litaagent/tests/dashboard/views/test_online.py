"""The page and the report of an online training: what it is judged by comes first."""

import json

import pytest

from apexrl.charts import plotly_figure
from apexrl.runs.session import Session
from lita.main import main
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.views.online import shown_by
from litaagent_std.dashboard.views.training import training_page

CONFIG = {
    "method": "ppo",
    "layers": ["l2", "l3"],
    "monitor": {"window": 2},
    "day_rewards": {"cash": 1.0, "risk": 0.5},
    "thread_rewards": {"price": 0.25},
}
GATES = [
    {"step": 2, "candidate": "v00002.npz", "best": "shipped", "answer": "open", "worlds": 4, "mean": 0.01},
    {"step": 4, "candidate": "v00004.npz", "best": "shipped", "answer": "better", "worlds": 9, "mean": 0.2, "low": 0.1},
]


def metrics_of(update, opponent):
    return {
        "play/gain": 0.1 * update,
        "play/error": float("inf") if update == 1 else 0.02,
        "play/score": 1.0 + 0.2 * update,
        "play/breach_rate": 0.3,
        "play/overstock": 0.2,
        "play/bankruptcies": 0.0,
        f"win_rate/{opponent}": 0.5,
        "reward/day": 0.4,
        "reward/day_cash": 0.5,
        "reward/day_risk": -0.2,
        "reward/thread": -0.1,
        "reward/thread_price": -0.4,
        "l2/entropy": 5.0,
        "l2/approx_kl": 0.01,
        "l2/warm_kl": 0.1,
        "l2/value_loss": 1.0,
        "sync/version": update,
        "sync/worlds": 4 * update,
        "sync/rollbacks": float(update >= 3),
        "time/cpu_world": 3600.0 * update,
        "time/cpu_gate": 360.0,
    }


def record(folder, config, opponent):
    with Session(folder, config=config, seed=1, sinks=("jsonl",), show_progress=False) as session:
        session.begin()
        for update in range(1, 5):
            session.log(update, metrics_of(update, opponent))


@pytest.fixture
def online(tmp_path, hostile_name):
    folder = tmp_path / "online"
    record(folder, CONFIG, hostile_name)
    (folder / "gates.jsonl").write_text("".join(json.dumps(gate) + "\n" for gate in GATES))
    (folder / "summary.json").write_text(json.dumps({"best": "somewhere/v00004.npz", "stopped": ""}))
    return folder


def page_of(folder, **query):
    return training_page(History(folder.parent), "training", folder.name, query)


def chart(page, name):
    return next(chart for chart in page.charts() if chart.name == name)


def line(page, name, series):
    return next(line for line in chart(page, name).series if line.name == series)


def test_everything_that_it_is_judged_by_is_there(online, hostile_name):
    page = page_of(online)
    names = [chart.name for chart in page.charts()]
    expected = [
        "gain",
        "profit",
        "health",
        "win_rates",
        "reward_day",
        "reward_thread",
        "entropy",
        "kl",
        "gate",
        "version",
        "cpu",
        "cost",
    ]
    assert names == [*(f"online_{name}" for name in expected), "l2_value_loss"]
    assert line(page, "online_gain", "mean of 2 updates").y == pytest.approx([0.1, 0.15, 0.25, 0.35])
    assert list(line(page, "online_gain", "roll-back").x) == [3]
    [band] = chart(page, "online_gain").bands
    assert list(band.x) == [3, 4]  # windows with the first update have no error
    assert band.high[0] - band.low[0] == pytest.approx(2 * 1.96 * 0.02 / 2**0.5)
    assert line(page, "online_profit", "each update").y == pytest.approx([0.2, 0.4, 0.6, 0.8])
    assert [one.name for one in chart(page, "online_win_rates").series] == [hostile_name]
    assert line(page, "online_reward_day", "0.5 · risk").y == pytest.approx([-0.1] * 4)
    assert {one.name for one in chart(page, "online_kl").series} == {
        "l2 from the version that acted",
        "l2 from the warm start",
    }
    assert list(line(page, "online_gate", "passed").x) == [4]
    assert list(line(page, "online_gate", "did not pass").x) == [2]
    assert list(chart(page, "online_cost").series[0].x) == pytest.approx([1.1, 2.1, 3.1, 4.1])
    json.dumps([plotly_figure(chart) for chart in page.charts()], allow_nan=False)


def test_facts_and_decisions_of_the_gate(online):
    page = page_of(online)
    facts = dict(page.context["online"].facts)
    assert facts["CPU hours"] == "4.10"
    assert (facts["version"], facts["worlds"], facts["roll-backs"]) == ("4", "16", "1")
    assert facts["best by the gate"] == "v00004.npz"
    table = page.context["online"].gates
    assert [row[2] for row in table.rows] == ["open", "better"]
    assert table.rows[0][-2:] == ["–", "–"]  # two worlds have no interval yet


def test_a_group_or_a_comparison_shows_every_metric(online):
    assert next(page_of(online, group="l2").charts()).name == "l2_approx_kl"
    compared = [chart.title for chart in page_of(online, compare="other").charts()]
    assert "play/gain" in compared
    assert "Profit" in compared


def test_a_run_without_a_gate_or_with_a_damaged_one_is_shown(online, texts):
    (online / "gates.jsonl").write_text("{}\n{}\n")
    assert any("gates.jsonl" in text for text in texts(page_of(online), "error"))
    for name in ("gates.jsonl", "summary.json", "timings.jsonl", "run.json"):
        (online / name).unlink()
    page = page_of(online)
    assert "online_gain" in [chart.name for chart in page.charts()]
    assert any("cannot be read" in text for text in texts(page, "error"))
    assert "the gate has not decided yet" in texts(page, "note")


def test_a_warm_start_has_not_passed_the_gate(tmp_path):
    record(tmp_path / "open", CONFIG | {"warm": "runs/first"}, "AS0")
    (tmp_path / "open/summary.json").write_text(json.dumps({"best": "runs/first", "stopped": ""}))
    facts = dict(page_of(tmp_path / "open").context["online"].facts)
    assert facts["best by the gate"] == "nothing has passed, the newest weights play"


def test_a_run_without_a_gate_is_not_said_to_wait_for_it(tmp_path, texts):
    record(tmp_path / "open", CONFIG | {"gate": {"every": 0}}, "AS0")
    page = page_of(tmp_path / "open")
    assert dict(page.context["online"].facts)["best by the gate"] == "no gate, the newest weights play"
    assert texts(page, "note") == ["this run has no gate: --gate.every is 0"]


def test_the_report_is_one_file(online, tmp_path):
    assert main(["report", str(online), "--output", str(tmp_path / "r.html"), "--no-figures"]) == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Gain over the reference in the same worlds" in text
    assert "Decisions of the gate" in text
    assert "<img src=x" not in text


def test_what_the_overview_shows_needs_no_chart_of_its_own():
    assert all(map(shown_by, ["play/gain", "win_rate/x", "l3/entropy", "l4/warm_kl", "es/effect", "sync/version"]))
    assert not any(map(shown_by, ["l2/value_loss", "es/fitness", "l2_entropy", "entropy"]))
