"""The server: pages with filters as forms, plotly.js, and the link to the source code."""

import io
import re
import socket
import threading
import zipfile

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.dashboard import server
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.server import make_app

SMALL = "name=tournament_history%2Fsmall"
ADDRESSES = ["/", f"/tournament?{SMALL}", f"/world?{SMALL}&world=0", "/training?name=runs%2Fone", "/nowhere"]


@pytest.fixture
def client(recorded):
    return make_app(History(recorded)).test_client()


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_page_links_to_the_source_of_the_running_version(client, address):
    page = client.get(address).get_data(as_text=True)
    [link] = re.findall(r'<footer><a href="([^"]*)">Source</a>', page)
    with zipfile.ZipFile(io.BytesIO(client.get(link).get_data())) as archive:
        names = set(archive.namelist())
        own = archive.read("litaagent_std/dashboard/server.py").decode()
    assert {"lita/main.py", "apexrl/charts/data.py", "litaagent_std/dashboard/templates/layout.html"} <= names
    assert "def make_app" in own
    assert not any("__pycache__" in name for name in names)
    assert any(name.endswith("LICENSE") for name in names)


def test_the_source_can_be_elsewhere(recorded):
    app = make_app(History(recorded), source_url="https://example.org/litaagent")
    assert '<a href="https://example.org/litaagent">Source</a>' in app.test_client().get("/").get_data(as_text=True)
    with pytest.raises(ConfigurationError, match="--source-url"):
        make_app(History(recorded), source_url="javascript:alert(1)")


def test_plotly_is_served_from_here(client):
    response = client.get("/static/plotly.js")
    assert response.status_code == 200
    assert len(response.get_data()) > 500_000
    again = client.get("/static/plotly.js", headers={"If-None-Match": response.headers["ETag"]})
    assert again.status_code == 304


def test_filters_are_forms_that_keep_the_rest_of_the_address(client):
    page = client.get(f"/world?{SMALL}&world=4&day=2").get_data(as_text=True)
    [form] = re.findall(r"<form.*?</form>", page, flags=re.DOTALL)
    assert re.search(r'<input type="hidden" name="world" value="4">', form)
    assert re.search(r'<option value="2" selected>day 2</option>', form)
    assert 'name="day" value="2"' not in form  # the form sets it itself
    compared = client.get("/training?name=runs%2Fone&compare=runs%2Ftwo").get_data(as_text=True)
    assert re.search(r'type="checkbox" [^>]*value="runs/two" checked', compared)
    twice = client.get("/training?name=runs%2Fone&compare=runs%2Ftwo&compare=runs%2Fthree").get_data(as_text=True)
    assert "there is no training" in twice


def test_a_page_says_whether_it_still_grows(client):
    assert "data-live" in client.get("/").get_data(as_text=True)
    assert "data-live" not in client.get(f"/tournament?{SMALL}").get_data(as_text=True)


def test_a_page_is_never_kept_by_the_browser(client):
    assert client.get("/").headers["Cache-Control"] == "no-store"


def test_what_is_not_there_is_a_404_with_a_page(client):
    response = client.get("/elsewhere")
    assert response.status_code == 404
    assert "there is no page" in response.get_data(as_text=True)
    assert client.get("/static/nothing.js").status_code == 404
    assert client.post("/").status_code == 405


def test_a_request_with_a_large_body_is_refused(client):
    assert client.get("/", data=b"x" * 100_000).status_code == 413


def test_a_client_that_says_nothing_is_given_up(recorded, monkeypatch):
    monkeypatch.setattr(server._Handler, "timeout", 0.5)
    opened = server.open_server(History(recorded), host="127.0.0.1", port=0)
    thread = threading.Thread(target=opened.serve_forever)
    thread.start()
    try:
        with socket.create_connection(("127.0.0.1", opened.server_port), timeout=30) as slow:
            slow.sendall(b"GET / HT")
            assert slow.recv(100) == b"", "the server closes the connection"
    finally:
        opened.shutdown()
        thread.join()
        opened.server_close()
