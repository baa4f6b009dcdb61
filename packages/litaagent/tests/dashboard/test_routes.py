"""Every address gives a page, whatever is in the data or in the address."""

import json
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apexrl.charts import plotly_figure
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.routes import page_at, query_of

SMALL = "name=tournament_history%2Fsmall"


def charts(page):
    return [chart.name for chart in page.charts()]


@pytest.fixture(scope="module")
def history(recorded):
    return History(recorded)


@pytest.mark.parametrize(
    ("path", "search", "expected"),
    [
        ("/", "", []),
        ("/tournament", SMALL, ["ranking", "distributions", "by_level", "by_length", "head_to_head"]),
        ("/tournament", f"{SMALL}&level=first", ["ranking", "distributions", "by_level", "by_length", "head_to_head"]),
        ("/world", f"{SMALL}&world=5", ["map", "balance", "stock_in", "prices", "shortfalls", "calendar"]),
        ("/agent", f"{SMALL}&agent=GreedyStdAgent", ["sales", "troubles", "prices_taken", "wealth", "acceptance"]),
        ("/training", "name=runs%2Fone&compare=runs%2Ftwo", ["episode_mean_reward", "train_value_loss"]),
        ("/hmasd", "name=hmasd%2Ffirst&group=Rewards", ["Rewards_Episode_Return_Mean"]),
    ],
)
def test_every_view_opens(history, texts, html, path, search, expected):
    page = page_at(history, path, f"?{search}")
    assert not texts(page, "error")
    assert charts(page) == expected
    json.dumps([plotly_figure(chart) for chart in page.charts()], allow_nan=False)
    assert html(page).count('class="chart"') == len(expected)


def test_the_arena_opens(history):
    [name] = [item.name for item in history.items() if item.kind == "arena"]
    page = page_at(history, "/arena", f"?name={name}")
    assert charts(page) == ["differences", "scores"]
    assert "GreedyStdAgent" in repr(page)


def test_a_negotiation_replays_every_turn(history):
    world = page_at(history, "/world", f"?{SMALL}&world=0&day=1")
    links = [row[0] for row in world.context["negotiations"].rows]
    longest = max((page_at(history, link.path, link.address.split("?")[1]) for link in links), key=lambda p: _turns(p))
    prices = plotly_figure(next(longest.charts()))
    assert len(prices["frames"]) == _turns(longest) > 1
    first, last = prices["frames"][0], prices["frames"][-1]
    assert sum(len(trace["x"]) for trace in first["data"]) == 1
    assert sum(len(trace["x"]) for trace in last["data"]) >= 2
    assert len(prices["layout"]["sliders"][0]["steps"]) == len(prices["frames"])


def _turns(page):
    return len(page.context["turns"].rows)


def test_filters_choose_seats(history, texts):
    everyone = repr(page_at(history, "/tournament", f"?{SMALL}"))
    first = page_at(history, "/tournament", f"?{SMALL}&level=first")
    assert repr(first) != everyone
    assert texts(page_at(history, "/tournament", f"?{SMALL}&level=middle"), "warning")  # two levels have no middle


@pytest.mark.parametrize(
    ("path", "search", "said"),
    [
        ("/tournament", "name=../..", "there is no tournament"),
        ("/world", f"{SMALL}&world=77", "not among the 6 finished worlds"),
        ("/negotiation", f"{SMALL}&world=0&day=0&negotiation=9999", "there was no negotiation"),
        ("/agent", f"{SMALL}&agent=Nobody", "not a competitor"),
        ("/training", "name=nothing", "there is no training"),
        ("/elsewhere", "", "there is no page"),
        ("/tournament", "&".join(f"a{i}=1" for i in range(99)), "does not know"),
    ],
)
def test_what_is_not_there_is_said(history, texts, path, search, said):
    [message] = texts(page_at(history, path, f"?{search}"), "error")
    assert said in message


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["/tournament", "/world", "/negotiation", "/agent"]),
    query=st.dictionaries(
        st.sampled_from(["world", "day", "factory", "negotiation", "page", "level", "length", "agent"]),
        st.one_of(st.text(max_size=8), st.integers(-5, 10**12).map(str)),
    ),
)
def test_no_address_breaks_a_page(history, html, path, query):
    from urllib.parse import urlencode

    page = page_at(history, path, "?" + urlencode({"name": "tournament_history/small", **query}))
    assert html(page)


def test_an_empty_history_says_so(tmp_path, texts):
    page = page_at(History(tmp_path), "/", "")
    assert page.live
    assert "nothing to show yet" in texts(page, "warning")[0]


def test_a_tournament_without_a_finished_world_says_so(tmp_path, texts):
    from litaagent_std.records.storage.store import RecordStore

    RecordStore(tmp_path / "new/records", {"played": {}}, 5)
    page = page_at(History(tmp_path), "/tournament", "?name=new")
    assert page.live
    assert "no world is finished yet" in texts(page, "warning")[0]
    assert "0 of 5" in repr(page_at(History(tmp_path), "/", ""))


@pytest.mark.parametrize("damage", ["records/factories/00000.parquet", "records/manifest.json"])
def test_damaged_records_give_a_message_and_leave_the_list(small, texts, damage):
    path = small / damage
    path.write_bytes(path.read_bytes()[:50])
    history = History(small.parent)
    [message] = texts(page_at(history, "/tournament", "?name=small"), "error")
    assert "cannot be" in message or "not the file that was written" in message
    assert not texts(page_at(history, "/", ""), "error")
    assert "small" in repr(page_at(history, "/", ""))


def test_a_manifest_of_another_form_gives_a_message(small, texts):
    (small / "records/manifest.json").write_text('{"format": "litaagent.records"}')
    assert "cannot be used" in texts(page_at(History(small.parent), "/tournament", "?name=small"), "error")[0]


def test_damaged_metrics_give_a_message(tmp_path, texts):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/metrics.jsonl").write_text('{"step": 1, "a": 2}\nnonsense\n{"step": 3}\n')
    assert "line 2" in texts(page_at(History(tmp_path), "/training", "?name=run"), "error")[0]


def test_a_run_that_is_being_written_is_shown_up_to_its_last_whole_line(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/metrics.jsonl").write_text('{"step": 1, "a": 2}\n{"step": 2, "a"')
    page = page_at(History(tmp_path), "/training", "?name=run")
    assert page.live
    assert charts(page) == ["a"]


def test_a_hostile_name_is_escaped_everywhere(history, html, hostile_name):
    for path, more in (("/tournament", ""), ("/world", "&world=0")):
        page = page_at(history, path, f"?name=tournament_history%2Fhostile{more}")
        figures = json.dumps([plotly_figure(chart) for chart in page.charts()])
        assert hostile_name in repr(page).replace("\\'", "'")
        assert "<img" not in figures + html(page)
        assert "<script>window" not in html(page)
        assert "&lt;img" in figures


def test_a_training_with_phases_is_one_training(tmp_path, texts):
    for phase in ("l2_bc", "l3_bc"):
        folder = tmp_path / "run/metrics" / phase
        folder.mkdir(parents=True)
        (folder / "metrics.jsonl").write_text('{"step": 1, "val/loss": 0.5}\n{"step": 2, "val/loss": 0.25}\n')
    (tmp_path / "run/run.json").write_text("{}")
    [item] = History(tmp_path).items()
    assert (item.kind, item.name) == ("training", "run")
    page = page_at(History(tmp_path), "/training", "?name=run")
    assert charts(page) == ["l2_bc_val_loss", "l3_bc_val_loss"]
    assert "run.json" in texts(page, "error")[0]  # which is damaged here


def test_of_a_parameter_given_twice_the_last_counts_and_lists_are_joined():
    assert query_of("?world=1&world=2&compare=a&compare=b%2Fc") == {"world": "2", "compare": "a,b/c"}


def test_a_page_that_is_not_there_has_its_status(history):
    assert page_at(history, "/elsewhere", "").status == 404
    assert page_at(history, "/tournament", "?name=nothing").status == 404
    assert page_at(history, "/tournament", f"?{SMALL}").status == 200


DEEP = "[" * 100_000
BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.timeout(60)
def test_a_bad_folder_does_not_break_the_list(small, tmp_path):
    history = tmp_path / "all"
    marked = json.dumps({"format": "litaagent.records", "stop": 10**11})
    for number, text in enumerate([DEEP, '{"files": [1]}', marked]):
        (history / f"t{number}/records").mkdir(parents=True)
        (history / f"t{number}/records/manifest.json").write_text(text)
        (history / f"t{number}/results.json").write_text(DEEP)
    for name in ("bomb", "deep"):
        (history / name).mkdir()
        (history / name / "metrics.jsonl").write_text('{"step": 1, "a": 2}\n')
    (history / "deep/report.json").write_text(DEEP)
    (history / "bomb/config.yaml").write_text(BOMB)
    (history / "pipe/logs").mkdir(parents=True)
    (history / "pipe/logs/metrics.jsonl").write_text('{"step": 1, "a": 2}\n')
    os.mkfifo(history / "pipe/logs/train.log")
    shutil.copytree(small, history / "good")
    page = repr(page_at(History(history), "/", ""))
    for name in ("t0", "t1", "t2", "deep", "bomb", "pipe", "good"):
        assert f"'{name}'" in page
    for item in History(history).items():
        assert page_at(History(history), f"/{item.kind}", f"?name={item.name}").title
    assert "regular file" in repr(page_at(History(history), "/hmasd", "?name=pipe"))


def test_links_that_lead_out_of_a_folder_are_not_shown(tmp_path):
    (tmp_path / "secret").write_text("the secret")
    (tmp_path / "served/run/logs").mkdir(parents=True)
    (tmp_path / "served/run/logs/metrics.jsonl").write_text('{"step": 1, "a": 2}\n')
    (tmp_path / "served/run/logs/train.log").symlink_to(tmp_path / "secret")
    history = History(tmp_path / "served")
    page = repr(page_at(history, "/hmasd", "?name=run"))
    assert "the secret" not in page
    assert "leads out of" in page
    (tmp_path / "served/run/logs/metrics.jsonl").unlink()
    (tmp_path / "served/run/logs/metrics.jsonl").symlink_to(tmp_path / "secret")
    assert history.items() == []
