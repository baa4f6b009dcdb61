"""Who may ask, and what a page may load."""

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.dashboard.guard import COOKIE, is_loopback, require_token
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.server import make_app, open_server

TOKEN = "a-long-enough-word"


def client(recorded, **options):
    return make_app(History(recorded), **options).test_client()


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
    ],
)
def test_loopback_is_this_machine_only(host, own):
    assert is_loopback(host) is own


def test_another_address_needs_a_token():
    with pytest.raises(ConfigurationError, match="--token"):
        require_token("0.0.0.0", None)
    require_token("0.0.0.0", TOKEN)
    require_token("127.0.0.1", None)


@pytest.mark.parametrize("token", ["", "short", "пароль-пароль"])
def test_a_weak_token_is_refused(token):
    with pytest.raises(ConfigurationError):
        require_token("127.0.0.1", token)


def test_without_a_token_only_this_machines_names_are_served(recorded):
    ask = client(recorded)
    assert ask.get("/", headers={"Host": "localhost:8050"}).status_code == 200
    assert ask.get("/", headers={"Host": "[::1]:8050"}).status_code == 200
    assert ask.get("/", headers={"Host": "elsewhere.example"}).status_code == 403


@pytest.mark.parametrize("path", ["/", "/static/dashboard.css", "/static/plotly.js", "/source.zip"])
def test_every_request_needs_the_token(recorded, path):
    ask = client(recorded, host="0.0.0.0", token=TOKEN)
    assert ask.get(path).status_code == 401
    assert ask.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert ask.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert ask.get(f"{path}?token=wrong").status_code == 401
    assert ask.post(path).status_code == 401


def test_the_token_in_the_address_becomes_a_cookie(recorded):
    ask = client(recorded, host="0.0.0.0", token=TOKEN)
    answer = ask.get(f"/world?name=a%20b&token={TOKEN}")
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/world?name=a+b"
    assert COOKIE in answer.headers["Set-Cookie"]
    assert "HttpOnly" in answer.headers["Set-Cookie"]
    assert ask.get("/").status_code == 200
    tricky = {"PATH_INFO": "//elsewhere.example/", "QUERY_STRING": f"token={TOKEN}"}
    assert ask.get("/", environ_overrides=tricky).headers["Location"] == "/elsewhere.example/"


def test_nothing_is_loaded_from_elsewhere(recorded):
    answer = client(recorded).get("/")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'self';" in policy
    page = answer.get_data(as_text=True)
    assert 'src="http' not in page
    assert 'href="http' not in page


@pytest.mark.parametrize("path", ["/static/../../../pyproject.toml", "/static/%2e%2e/server.py", "/static//etc/passwd"])
def test_static_files_stay_in_their_folder(recorded, path):
    answer = client(recorded).get(path)
    assert answer.status_code in {308, 404}
    assert "import" not in answer.get_data(as_text=True)
    assert "root:" not in answer.get_data(as_text=True)


def test_a_taken_port_is_named(recorded):
    server = open_server(History(recorded), host="127.0.0.1", port=0)
    try:
        with pytest.raises(ConfigurationError, match="--port"):
            open_server(History(recorded), host="127.0.0.1", port=server.server_port)
    finally:
        server.server_close()
