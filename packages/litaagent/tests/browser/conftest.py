"""A real Chromium and a server on this machine. Only ``make test-browser`` runs these tests."""

import os
import threading
from contextlib import contextmanager

import pytest

if "LITA_BROWSER" not in os.environ:
    collect_ignore_glob = ["test_*.py"]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS = 60_000  # milliseconds: a busy machine is not our fault
LOST = ("net::ERR_SOCKET_NOT_CONNECTED", "net::ERR_INTERNET_DISCONNECTED")  # the page repeats the request


@contextmanager
def serving(folder, **options):
    from litaagent_std.dashboard.history import History
    from litaagent_std.dashboard.server import open_server

    server = open_server(History(folder), host="127.0.0.1", port=0, **options)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="session")
def serve():
    """Serves a folder while a block runs, and gives the address."""
    return serving


@pytest.fixture(scope="session")
def site(recorded):
    """The address of the recorded history."""
    with serving(recorded) as address:
        yield address


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["LITA_BROWSER"], args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens pages; after the test none may have logged an error, except an expected one, or asked another host."""
    opened, troubles = [], []

    def watch(page, address, expected):
        host = address.split("/")[2] if address.startswith("http") else ""

        def collect(message):
            if message.type == "error" and not message.text.endswith(LOST) and expected not in message.text:
                troubles.append(message.text)

        page.on("console", collect)
        page.on("pageerror", lambda error: troubles.append(str(error)))

        def check(request):
            if not request.url.startswith((f"http://{host}/", "data:", "blob:", "file:")):
                troubles.append(f"asked {request.url}")

        page.on("request", check)

    def go(address, width=1280, expected="\0"):
        context = chromium.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(SECONDS)
        page = context.new_page()
        opened.append(context)
        watch(page, address, expected)
        page.goto(address)
        page.wait_for_selector("h1")
        return page

    yield go
    for context in opened:
        context.close()
    assert troubles == []
