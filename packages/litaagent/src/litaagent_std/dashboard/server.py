"""The web server: a Flask application with a page for every address, plotly.js and the source code."""

from __future__ import annotations

import io
import logging
from typing import Final

from flask import Flask, Response, request, send_file
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from apexrl.runs.errors import ConfigurationError
from litaagent_std.dashboard.guard import protect, require_token
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.render import STATIC, plotly_script, render_page
from litaagent_std.dashboard.routes import page_at, query_of
from litaagent_std.dashboard.source import source_archive

__all__ = ["make_app", "open_server"]

_SOURCE: Final = "/source.zip"
_MOST_BYTES: Final = 65_536  # of a request's body; pages need none
_PLOTLY_AGE: Final = 86_400  # seconds for which a browser keeps plotly.js


class _Handler(WSGIRequestHandler):
    """Gives up a client that sends or takes nothing for half a minute."""

    timeout = 30  # seconds


def make_app(
    history: History, *, host: str = "127.0.0.1", token: str | None = None, source_url: str | None = None
) -> Flask:
    """Return the application.

    Args:
        history: What it shows.
        host: The address that it will listen at.
        token: A secret that every request must carry; required unless the address is this machine's own.
        source_url: Where the source code of this version is. Default: an archive of the installed packages,
            ``/source.zip``.

    Raises:
        ConfigurationError: If the address can be reached from elsewhere and there is no token, or the source's
            address is not one of HTTP.
    """
    require_token(host, token)
    if source_url is not None and not source_url.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"--source-url is {source_url!r}",
            "it must begin with http:// or https://",
            "leave it out to serve the source code of the installed packages",
        )
    app = Flask("litaagent_std.dashboard", static_folder=str(STATIC), static_url_path="/static")
    app.config["MAX_CONTENT_LENGTH"] = _MOST_BYTES
    protect(app, host, token)

    @app.get("/static/plotly.js")
    def plotly() -> Response:
        return send_file(plotly_script(), "text/javascript", max_age=_PLOTLY_AGE)

    @app.get(_SOURCE)
    def source() -> Response:
        return send_file(io.BytesIO(source_archive()), "application/zip", True, "litaagent-source.zip")

    @app.get("/", defaults={"path": ""})
    @app.get("/<path:path>")
    def page(path: str) -> tuple[str, int, dict[str, str]]:
        search = request.query_string.decode(errors="replace")
        shown = page_at(history, f"/{path}", search)
        html = render_page(shown, query_of(search, strict=False), source_url or _SOURCE)
        return html, shown.status, {"Cache-Control": "no-store"}

    return app


def open_server(
    history: History, *, host: str, port: int, token: str | None = None, source_url: str | None = None
) -> BaseWSGIServer:
    """Open the address and return the server, ready for ``serve_forever``; port 0 takes a free one.

    Raises:
        ConfigurationError: If the address cannot be opened, or needs a token.
    """
    app = make_app(history, host=host, token=token, source_url=source_url)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        return make_server(host, port, app, threaded=True, request_handler=_Handler)
    except (OSError, SystemExit) as error:  # werkzeug calls sys.exit if a port is taken
        raise ConfigurationError(
            f"--host {host} --port {port} cannot be opened",
            "an address serves one program at a time",
            "choose another --port",
        ) from error
