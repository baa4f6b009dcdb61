"""The reasons of a seat: a replay that is the record, or says that it is not, and a page that never waits for it."""

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from apexrl.charts import plotly_figure
from litaagent_std.agents.explain import from_tournament
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.dashboard import replays as replays_module
from litaagent_std.dashboard.decisions import Choice, Deal, Goal, SeatDecisions, decisions_from, decisions_text
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.page import Link
from litaagent_std.dashboard.replays import Replays, cache_folder, code_digest
from litaagent_std.dashboard.report import pages_of
from litaagent_std.dashboard.routes import page_at
from litaagent_std.dashboard.seat_replay import ReplayRefusedError, replay_seat
from litaagent_std.dashboard.views import decisions as view
from litaagent_std.records.reader import WorldKey, open_records
from litaagent_std.world.reproducible.hashing import is_fixed

AGENT = "name=ours&agent=LitaAgentHRL"
OVERALL = ["sales", "troubles", "prices_taken", "wealth", "acceptance"]


@pytest.fixture(scope="module")
def seat(with_ours):
    [seat] = from_tournament(with_ours / "ours", 0).seats
    return seat


@pytest.fixture(scope="module")
def found(with_ours, seat):
    if not is_fixed():
        pytest.skip("worlds repeat only under PYTHONHASHSEED=0, which make test sets")
    return replay_seat(with_ours / "ours", 0, seat)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Replays in a folder of the test's own."""
    own = Replays(tmp_path / "kept")
    monkeypatch.setattr(view, "shared_replays", lambda: own)
    return own


def names(page):
    return [chart.name for chart in page.charts()]


def keep(kept, folder, decisions):
    """Puts a finished replay where the page looks for it."""
    from litaagent_std.dashboard.warehouse import Warehouse

    recorded = view._recorded_digest(Warehouse(folder / "records"), decisions.world)
    key = replays_module._key(folder, decisions.world, decisions.seat, recorded)
    (kept.folder / f"{key}.json").write_bytes(decisions_text(decisions))


def test_a_replay_is_the_record_and_holds_its_reasons(with_ours, seat, found):
    record = open_records(with_ours / "ours").world(WorldKey(0, 0))
    assert found.faithful
    assert (found.agent, found.agent_class) == (record.names[seat], "LitaAgentHRL")
    assert found.layers == ("heuristic", "model", "joint")
    assert len(found.interventions) == found.n_days == 8
    signed = [
        (row["day"], row["quantity"], row["time"], row["unit_price"])
        for row in record.tables["contracts"].to_pylist()
        if seat in (row["buyer"], row["seller"])
    ]
    assert [(deal.day, deal.quantity, deal.time, deal.price) for deal in found.deals] == signed != []
    turns = [turn for _, turn in record.decisions(seat)]
    assert len(found.choices) == len(turns)
    assert sum(choice.kind == "accept" for choice in found.choices) == sum(turn.response == 0 for turn in turns) > 0
    assert all(choice.because for choice in found.choices)
    assert decisions_from(decisions_text(found)) == found


def test_a_replay_by_other_code_says_from_which_day_on_it_differs(with_ours, seat, found, monkeypatch):
    day = found.deals[-1].day
    plain = LitaAgentHRL.counter_all

    def stubborn(self, offers, states):
        answers = plain(self, offers, states)
        if self.awi.current_step < day:
            return answers
        from negmas import ResponseType
        from negmas.sao import SAOResponse

        return {name: SAOResponse(ResponseType.END_NEGOTIATION, None) for name in answers}

    monkeypatch.setattr(LitaAgentHRL, "counter_all", stubborn)
    other = replay_seat(with_ours / "ours", 0, seat)
    assert other.first_difference == day
    assert not other.faithful


def test_records_choose_no_code(with_ours, seat, tmp_path, monkeypatch):
    folder = shutil.copytree(with_ours / "ours", tmp_path / "ours")
    manifest = folder / "records/manifest.json"
    content = json.loads(manifest.read_text())
    (tmp_path / "chosen_by_a_record.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for path in (
        "chosen_by_a_record.Agent",
        "litaagent_std.tournament.competitors.integer_offers.chosen_by_a_record:Agent",
    ):
        content["source"]["played"]["competitors"][1] = path
        manifest.write_text(json.dumps(content))
        with pytest.raises(ReplayRefusedError, match=r"'chosen_by_a_record.Agent'.*record is data"):
            replay_seat(folder, 0, seat)
    assert "chosen_by_a_record" not in sys.modules


def test_a_seat_of_others_is_refused(with_ours, seat):
    with pytest.raises(ReplayRefusedError, match=f"seat {seat + 1} of world 0 is not ours.*Ours are {seat} in"):
        replay_seat(with_ours / "ours", 0, seat + 1)


def test_a_page_starts_the_replay_and_shows_it_when_it_is_done(with_ours, seat, found, kept, texts, html):
    history = History(with_ours)
    plain = page_at(history, "/agent", f"?{AGENT}")
    assert names(plain) == OVERALL
    assert not plain.live

    waiting = page_at(history, "/agent", f"?{AGENT}&seat=0-{seat}")
    assert "not replayed yet" in html(waiting)
    link = waiting.context["reasons"].replay_link
    assert isinstance(link, Link)
    assert not waiting.live
    assert not list(kept.folder.iterdir())

    started = page_at(history, link.path, link.address.split("?")[1])
    assert started.live
    assert "being played again" in texts(started, "warning")[0]
    deadline = time.monotonic() + 240
    while (page := page_at(history, link.path, link.address.split("?")[1])).live and time.monotonic() < deadline:
        time.sleep(0.2)
    assert names(page) == [
        "goal_units_sell",
        "goal_gap_sell",
        "goal_prices_sell",
        "interventions",
        "choices",
        "goal_delivery",
        *OVERALL,
    ]
    assert any("turn by turn" in text for text in texts(page, "note"))
    json.dumps([plotly_figure(chart) for chart in page.charts()], allow_nan=False)
    assert html(page).index("goal_units_sell") < html(page).index("In all its worlds")
    again = page_at(history, "/agent", f"?{AGENT}&seat=0-{seat}&day=3")  # kept: no replay is asked for
    table = again.context["reasons"].decisions
    assert len(table.rows) == sum(choice.day == 3 for choice in found.choices) > 0


def test_a_seat_that_is_not_ours_says_so(with_ours, kept, texts):
    page = page_at(History(with_ours), "/agent", "?name=ours&agent=RandomStdAgent&seat=0-1&replay=yes")
    assert names(page) == OVERALL
    assert "is not ours" in texts(page, "note")[0]
    assert not list(kept.folder.iterdir())


def test_a_replay_that_differs_says_so_first(with_ours, seat, found, kept, texts):
    folder = with_ours / "ours"
    for changed, said in (
        (replace(found, first_difference=5), "from day 5 on"),
        (replace(found, same_world=False), "drawn otherwise"),
    ):
        keep(kept, folder, changed)
        page = page_at(History(with_ours), "/agent", f"?{AGENT}&seat=0-{seat}")
        assert said in texts(page, "warning")[0]
        assert "not the reasons of what was recorded" in texts(page, "warning")[0]


def test_learned_weights_and_both_sides_are_drawn(with_ours, seat, found, kept):
    goals = tuple(replace(goal, buying=True) for goal in found.goals)
    choices = tuple(replace(choice, alpha=0.25) for choice in found.choices)
    keep(kept, with_ours / "ours", replace(found, goals=found.goals + goals, choices=choices))
    page = page_at(History(with_ours), "/agent", f"?{AGENT}&seat=0-{seat}")
    assert {"goal_units_buy", "goal_gap_buy", "goal_prices_buy", "weights"} <= set(names(page))
    weights = next(chart for chart in page.charts() if chart.name == "weights")
    assert {value for series in weights.series for value in series.y} == {0.25, None}


def test_a_replay_that_fails_says_why_and_is_not_started_again_and_again(with_ours, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(replays_module.sys, "executable", "/bin/false")
    assert kept.wait(with_ours / "ours", 0, 0, "digest").state == "failed"
    asked = kept.ask(with_ours / "ours", 0, 0, "digest")
    assert (asked.state, asked.why) == ("failed", "the replay ended with status 1")


def test_a_replay_that_hangs_is_given_up(with_ours, tmp_path, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(replays_module.sys, "executable", str(slow))
    impatient = Replays(tmp_path / "kept", seconds=0.2)
    assert "given up" in impatient.wait(with_ours / "ours", 0, 0, "digest").why


def test_more_than_a_few_replays_do_not_wait_in_line(with_ours, kept, monkeypatch):
    monkeypatch.setattr(replays_module, "_MOST_WAITING", 0)
    assert "waiting already" in kept.ask(with_ours / "ours", 0, 0, "digest").why


def test_only_the_newest_replays_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(replays_module, "_MOST_KEPT", 2)
    for age in range(4):
        (tmp_path / f"{age}.json").write_text("")
        os.utime(tmp_path / f"{age}.json", (1000 - age, 1000 - age))
    replays_module._forget_old(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.json", "1.json"]


def test_what_is_kept_belongs_to_one_recording_and_one_code(with_ours, seat, found, kept, monkeypatch):
    folder = with_ours / "ours"
    key = replays_module._key(folder, 0, seat, "a")
    (kept.folder / f"{key}.json").write_bytes(decisions_text(found))
    assert kept.look(folder, 0, seat, "a").decisions == found
    assert kept.look(folder, 0, seat, "b").state == "none"
    (kept.folder / f"{key}.json").write_bytes(decisions_text(found)[:-20])
    assert kept.look(folder, 0, seat, "a").state == "none"
    (kept.folder / f"{key}.json").write_bytes(decisions_text(found))
    monkeypatch.setattr(replays_module, "code_digest", lambda: "other")
    assert kept.look(folder, 0, seat, "a").state == "none"


def test_the_digest_of_the_code_follows_every_file(tmp_path, monkeypatch):
    (tmp_path / "policy").mkdir()
    monkeypatch.setattr(replays_module, "_PACKAGE", tmp_path)
    code_digest.cache_clear()
    digests = [code_digest()]
    for name, content in (("a.py", "1"), ("a.py", "2"), ("weights.npz", "3")):
        (tmp_path / "policy" / name).write_text(content)
        code_digest.cache_clear()  # a process keeps the digest of the code that it has loaded
        digests.append(code_digest())
    (tmp_path / "policy/notes.txt").write_text("no code")
    code_digest.cache_clear()
    assert len(set(digests)) == 4
    assert code_digest() == digests[-1]
    code_digest.cache_clear()


def test_the_folder_of_replays_can_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("LITA_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path / "replays"
    monkeypatch.delenv("LITA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert str(cache_folder()) == "/somewhere/litaagent/replays"
    (tmp_path / "file").write_text("")
    assert Replays(tmp_path / "file/replays").folder.is_dir()  # one of its own


def test_a_report_has_the_same_figures(with_ours, seat, found, kept):
    keep(kept, with_ours / "ours", found)
    page = pages_of(with_ours / "ours", 0, "LitaAgentHRL")[-1]
    assert page.title == "LitaAgentHRL"
    assert "goal_units_sell" in names(page)


def test_a_side_of_a_day_in_numbers():
    offer = (4, 1, 20)
    common = {"day": 0, "buying": False, "proposed": None, "limit": None, "chance": None, "because": "so"}
    choices = (
        Choice(round=0, partner="a", received=offer, kind="accept", offer=offer, alpha=0.5, **common),
        Choice(round=0, partner="b", received=offer, kind="end", offer=None, alpha=1.0, **common),
        Choice(round=1, partner="b", received=None, kind="end", offer=None, alpha=None, **common),
    )
    clipped = Choice(
        **(common | {"proposed": (9, 1, 20)}),
        round=2,
        partner="b",
        received=None,
        kind="reject",
        offer=offer,
        alpha=None,
    )
    decisions = SeatDecisions(
        world=0,
        seat=0,
        agent="00",
        agent_class="LitaAgentHRL",
        layers=("heuristic", "learned", "learned"),
        n_days=2,
        first_difference=None,
        same_world=True,
        interventions=(1, 0),
        goals=(Goal(day=0, buying=False, units=(3, 4), prices=(19.0, 20.0)),),
        choices=(*choices, clipped),
        deals=(Deal(day=0, buying=False, partner="a", quantity=4, time=1, price=20, goal_price=20.0),),
    )
    first, second = decisions.sides(buying=False)
    assert (first.wanted, first.signed, first.received, first.accepted, first.rounds) == (7, 4, 2, 1, 1)
    assert first.alpha == 0.75
    assert (second.wanted, second.alpha) == (0, None)
    assert not any(side.wanted or side.received for side in decisions.sides(buying=True))
    assert [choice.clipped for choice in decisions.choices] == [False, False, False, True]


def test_the_server_itself_loads_nothing_that_plays():
    code = "import sys, litaagent_std.dashboard.server; print({'scml', 'negmas', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
