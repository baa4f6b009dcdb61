"""Every view on a recorded tournament, in a real browser, wide and narrow."""

import re
import time

import pytest
from playwright.sync_api import expect

SMALL = "name=tournament_history%2Fsmall"
HOSTILE = "name=tournament_history%2Fhostile"
PATIENCE = 60_000

VIEWS = {
    "home": ("/", 0),
    "tournament": (f"/tournament?{SMALL}", 5),
    "world": (f"/world?{SMALL}&world=1", 6),
    "negotiation": (f"/negotiation?{SMALL}&world=1&day=2&negotiation=0", 3),
    "agent": (f"/agent?{SMALL}&agent=GreedyStdAgent", 5),
    "training": ("/training?name=runs%2Fone&compare=runs%2Ftwo", 2),
    "hmasd": ("/hmasd?name=hmasd%2Ffirst", 2),
}


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_and_fits(open_page, site, view, width):
    address, n_figures = VIEWS[view]
    page = open_page(site + address, width)
    expect(page.locator(".js-plotly-plot")).to_have_count(n_figures, timeout=PATIENCE)
    if n_figures:
        page.wait_for_selector(".js-plotly-plot .main-svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".text-error").count() == 0


def test_from_the_list_down_to_a_negotiation(open_page, site):
    page = open_page(site)
    page.get_by_role("link", name="tournament_history/small").click()
    page.get_by_role("link", name="world 4", exact=True).click()
    expect(page.locator("h1")).to_have_text("World 4", timeout=PATIENCE)
    page.get_by_role("link", name=re.compile(r"^negotiation \d+$")).first.click()
    expect(page.locator("h1")).to_contain_text("Negotiation", timeout=PATIENCE)
    page.get_by_role("link", name="world 4", exact=True).click()
    expect(page.locator("h1")).to_have_text("World 4", timeout=PATIENCE)
    page.wait_for_load_state("networkidle")
    page.go_back()
    expect(page.locator("h1")).to_contain_text("Negotiation", timeout=PATIENCE)
    page.wait_for_load_state("networkidle")
    page.go_back()
    expect(page.locator("h1")).to_have_text("World 4", timeout=PATIENCE)


def test_a_request_that_is_lost_is_asked_again(open_page, site):
    page = open_page(f"{site}/tournament?{SMALL}")
    lost = []

    def drop_the_first(route):
        if lost:
            route.continue_()
        else:
            lost.append(route.request.url)
            route.abort("internetdisconnected")

    before = page.locator("table").first.inner_text()
    page.context.route("**/tournament?*", drop_the_first)
    page.get_by_label("level", exact=True).select_option("first")
    expect(page.locator("table").first).not_to_have_text(before, timeout=PATIENCE, use_inner_text=True)
    assert len(lost) == 1


def test_a_filter_changes_the_ranking_and_the_address(open_page, site):
    page = open_page(f"{site}/tournament?{SMALL}")
    seats = page.locator("table").first
    before = seats.inner_text()
    page.get_by_label("level", exact=True).select_option("first")
    expect(seats).not_to_have_text(before, timeout=PATIENCE, use_inner_text=True)
    assert "level=first" in page.url
    chosen = seats.inner_text()
    page.reload()
    page.wait_for_selector("table")
    assert seats.inner_text() == chosen != before
    page.go_back()
    expect(seats).to_have_text(before, timeout=PATIENCE, use_inner_text=True)
    assert "level" not in page.url


def test_filters_work_by_keyboard_and_keep_scroll_and_focus(open_page, site):
    page = open_page(f"{site}/world?{SMALL}&world=0", 390)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    day = page.get_by_label("day", exact=True)
    day.focus()
    top = page.evaluate("window.scrollY")
    assert top > 0
    page.keyboard.press("ArrowDown")
    expect(page.locator("main")).to_contain_text("on day 1", timeout=PATIENCE)
    assert "day=1" in page.url
    assert page.evaluate("document.activeElement.id") == "filter-day"
    assert abs(page.evaluate("window.scrollY") - top) < 5
    expect(page.locator(".js-plotly-plot")).to_have_count(6)


def test_trainings_are_compared_by_ticking_them(open_page, site):
    page = open_page(f"{site}/training?name=runs%2Fone")
    page.locator("summary").click()
    page.get_by_label("runs/two").check()
    expect(page.locator("table").first).to_contain_text("runs/two", timeout=PATIENCE)
    assert "compare=runs%2Ftwo" in page.url
    page.get_by_label("runs/two").uncheck()
    expect(page.locator("table").first).not_to_contain_text("runs/two", timeout=PATIENCE)
    assert "compare" not in page.url


def test_every_page_offers_its_source(open_page, site):
    page = open_page(site)
    with page.expect_download() as download:
        page.get_by_role("link", name="Source").click()
    assert download.value.suggested_filename == "litaagent-source.zip"


def test_a_negotiation_replays(open_page, site):
    world = open_page(f"{site}/world?{SMALL}&world=0&day=1")
    world.wait_for_selector("table")
    rows = world.locator("section", has_text="Negotiations of").locator("tbody tr")
    lengths = [int(row.locator("td").last.inner_text()) for row in rows.all()]
    rows.nth(lengths.index(max(lengths))).get_by_role("link").click()
    world.wait_for_selector(".slider-group")
    count = "document.querySelector('.js-plotly-plot').data.reduce((n, t) => n + (t.text ? t.x.length : 0), 0)"
    everything = world.evaluate(count)
    assert everything > 2
    world.locator(".slider-rail-touch-rect").first.click(position={"x": 3, "y": 5})
    deadline = time.monotonic() + 30
    while world.evaluate(count) == everything and time.monotonic() < deadline:
        world.wait_for_timeout(100)
    assert world.evaluate(count) < everything
    world.locator(".updatemenu-button").first.click()  # play
    deadline = time.monotonic() + 60
    while world.evaluate(count) < everything and time.monotonic() < deadline:
        world.wait_for_timeout(200)
    assert world.evaluate(count) == everything


def test_hostile_names_are_shown_and_never_run(open_page, site, hostile_name):
    page = open_page(f"{site}/tournament?{HOSTILE}")
    page.wait_for_selector(".js-plotly-plot .main-svg")
    assert page.get_by_role("link", name=hostile_name).count() == 1
    page.get_by_role("link", name=hostile_name).click()
    expect(page.locator("h1")).to_have_text(re.sub(r"\s+", " ", hostile_name), timeout=PATIENCE)
    page.wait_for_selector(".js-plotly-plot .main-svg")
    world = open_page(f"{site}/world?{HOSTILE}&world=0")
    world.wait_for_selector(".js-plotly-plot .main-svg")
    for shown in (page, world):
        assert shown.evaluate("window.broken === undefined")
        assert shown.locator("img").count() == 0


def test_a_running_tournament_grows_by_itself(open_page, serve, recorded, tmp_path):
    from litaagent_std.records.reader import open_records
    from litaagent_std.records.storage.segment import pack_world
    from litaagent_std.records.storage.store import RecordStore

    source = open_records(recorded / "tournament_history/small")
    store = RecordStore(tmp_path / "running/records", {"played": {}}, 6)
    with serve(tmp_path) as address:
        page = open_page(f"{address}/tournament?name=running")
        expect(page.locator("main")).to_contain_text("no world is finished yet", timeout=PATIENCE)
        for key in source.keys[:3]:
            store.add(key.world, pack_world(key.world, source.world(key).tables))
        expect(page.locator("main")).to_contain_text("3 of 6 worlds", timeout=PATIENCE)
        page.wait_for_selector(".js-plotly-plot .main-svg")
        page.evaluate("window.scrollTo(0, 400)")
        page.evaluate("window.chart = document.querySelector('.js-plotly-plot')")
        store.add(3, pack_world(3, source.world(source.keys[3]).tables))
        expect(page.locator("main")).to_contain_text("4 of 6 worlds", timeout=PATIENCE)
        assert page.evaluate("window.scrollY") == 400
        assert page.evaluate("window.chart.isConnected")  # the chart was redrawn, not replaced


@pytest.mark.parametrize("width", [1280, 390])
def test_the_reasons_of_our_agent_are_shown_for_its_seat(open_page, serve, with_ours, width):
    with serve(with_ours) as address:
        page = open_page(f"{address}/world?name=ours&world=0", width)
        page.get_by_role("link", name="LitaAgentHRL", exact=True).click()
        expect(page.locator("h1")).to_have_text("LitaAgentHRL", timeout=PATIENCE)
        expect(page.locator(".js-plotly-plot")).to_have_count(10, timeout=PATIENCE)
        expect(page.locator("main")).to_contain_text("Decisions of day")
        expect(page.locator("h1 .live")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("td.long").first.bounding_box()["height"] < 120  # a reason is not squeezed into a column


def test_what_is_wrong_is_said(open_page, site):
    page = open_page(f"{site}/tournament?name=..%2F..%2Fetc", expected="404")
    expect(page.locator(".text-error")).to_contain_text("there is no tournament", timeout=PATIENCE)


def test_a_token_opens_the_page(chromium, serve, recorded):
    with serve(recorded, token="a-long-enough-word") as address:
        page = chromium.new_context().new_page()
        assert page.goto(address).status == 401
        page.goto(f"{address}/?token=a-long-enough-word")
        page.wait_for_selector("table")
        assert "token" not in page.url
        page.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_report_opens_from_the_disk(open_page, recorded, tmp_path, width, hostile_name):
    from litaagent_std.dashboard.report import make_report, pages_of

    pages = pages_of(recorded / "tournament_history/hostile")
    [path] = make_report(pages, tmp_path / "report.html", title="report", figures=False)
    page = open_page(path.as_uri(), width)
    n_figures = sum(1 for section in pages for _ in section.charts())
    expect(page.locator(".js-plotly-plot")).to_have_count(n_figures, timeout=PATIENCE)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.broken === undefined")
    assert page.get_by_text(hostile_name).count() > 0
