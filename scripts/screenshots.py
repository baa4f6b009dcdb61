"""Take the screenshots of the documentation from the folder that ``lita demo`` wrote.

python scripts/screenshots.py runs/demo docs/images
"""

import subprocess
import sys
import threading
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from apexrl.charts import save_figure
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.report import pages_of
from litaagent_std.dashboard.server import open_server
from litaagent_std.dashboard.warehouse import Warehouse
from litaagent_std.records.reader import RECORDS_FOLDER

HEIGHTS = {1280: 1250, 390: 1500}
REPORT = (1280, 892)  # contents, ranking, its chart and the distributions
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main(folder: Path, target: Path) -> None:
    """Serve the folder, take every view at both widths, and draw figures of the pages as SVG."""
    world = "/world?name=tournament&world=0"
    pages = pages_of(folder / "tournament")
    negotiation = next(page for page in pages if page.title.startswith("Negotiation"))
    index, day = (word for word in negotiation.title.split() if word.isdecimal())
    views = {
        "tournament": "/tournament?name=tournament",
        "world": world,
        "negotiation": f"/negotiation?name=tournament&world=0&day={day}&negotiation={index}",
        "agent": "/agent?name=tournament&agent=LitaAgentHRL",
        "reasons": _reasons(folder / "tournament"),
    }
    target.mkdir(parents=True, exist_ok=True)
    for chart in (chart for page in pages for chart in page.charts()):
        if chart.name in {"map", "negotiation_price", "calendar"}:
            save_figure(chart, target, ("svg",))
    server = open_server(History(folder), host="127.0.0.1", port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium = subprocess.run(["scripts/chromium.sh"], capture_output=True, text=True, check=True).stdout.strip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for width, height in HEIGHTS.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(120_000)
            for name, address in views.items():
                page.goto(f"http://127.0.0.1:{server.server_port}{address}")
                page.wait_for_selector(".js-plotly-plot .main-svg")
                page.wait_for_timeout(3000)
                if name == "reasons":
                    page.get_by_text("Why it did so").evaluate("heading => heading.scrollIntoView()")
                    page.wait_for_timeout(1000)
                _save(page, target / f"{name}_{width}.png")
        page = browser.new_page(viewport={"width": REPORT[0], "height": REPORT[1]})
        page.set_default_timeout(120_000)
        page.goto((folder / "report.html").resolve().as_uri())
        page.wait_for_selector(".js-plotly-plot .main-svg")
        page.wait_for_timeout(3000)
        _save(page, target / "report_1280.png")
        browser.close()
    server.shutdown()


def _save(page: Page, path: Path) -> None:
    """Save what the window shows with 256 colors, which is enough for flat areas and a third of the size."""
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def _reasons(tournament: Path) -> str:
    """Return the address of the recorded reasons of our seat in the first world."""
    store = Warehouse(tournament / RECORDS_FOLDER)
    [seat, *_] = store.ask(
        "SELECT factory FROM factories WHERE competitor = 'LitaAgentHRL' ORDER BY factory", ["factories"], world=0
    )
    query = {"agent": "LitaAgentHRL", "seat": f"0-{seat['factory']}", "day": "10"}
    return "/agent?name=tournament&" + "&".join(f"{name}={value}" for name, value in query.items())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
