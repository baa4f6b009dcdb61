"""The web page: a view for every address, looked at again by itself while what it shows still grows."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from dash import ALL, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate
from werkzeug.serving import BaseWSGIServer, make_server

from apexrl.runs.errors import ConfigurationError
from litaagent_std.dashboard.components import render
from litaagent_std.dashboard.guard import protect, require_token
from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.routes import page_at, query_of

__all__ = ["make_app", "open_server"]

_SECONDS: Final = 5
"""How often a page that still grows is looked at again."""


def make_app(history: History, *, host: str = "127.0.0.1", token: str | None = None) -> Dash:
    """Return the application.

    Args:
        history: What it shows.
        host: The address that it will listen at.
        token: The word that every request must carry; needed unless the address is this machine's own.

    Raises:
        ConfigurationError: If the address can be reached from elsewhere and there is no token.
    """
    require_token(host, token)
    app = Dash(
        "litaagent",
        title="LitaAgent",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        suppress_callback_exceptions=True,
    )
    app.layout = html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Interval(id="tick", interval=_SECONDS * 1000),
            dcc.Store(id="shown"),
            html.Header(
                [dcc.Link("LitaAgent", href="/"), html.Span("SCML Standard league", className="what")], className="top"
            ),
            html.Main(id="page"),
        ]
    )
    _connect(app, history)
    protect(app.server, host, token, app.csp_hashes())
    return app


def _connect(app: Dash, history: History) -> None:
    @app.callback(
        Output("page", "children"),
        Output("shown", "data"),
        Output("tick", "disabled"),
        Input("address", "pathname"),
        Input("address", "search"),
        Input("tick", "n_intervals"),
        State("shown", "data"),
    )
    def show(path: str | None, search: str | None, ticks: int | None, shown: str | None) -> tuple[Any, Any, Any]:
        del ticks
        page = page_at(history, path or "/", search or "")
        digest = hashlib.sha256(repr(page).encode()).hexdigest()
        if ctx.triggered_id == "tick" and digest == shown:
            return no_update, no_update, not page.live
        return render(page), digest, not page.live

    @app.callback(
        Output("address", "search"),
        Input({"type": "choice", "name": ALL, "shown": ALL}, "value"),
        State({"type": "choice", "name": ALL, "shown": ALL}, "id"),
        State("address", "search"),
        prevent_initial_call=True,
    )
    def choose(values: list[Any], places: list[dict[str, str]], search: str | None) -> str:
        query = query_of(search or "")
        for place, value in zip(places, values, strict=True):
            text = ",".join(value) if isinstance(value, list) else str(value or "")
            if text == place["shown"]:
                continue  # as the page was drawn: an address written for that would stand in the way of going back
            if text:
                query[place["name"]] = text
            else:
                query.pop(place["name"], None)
        if query == query_of(search or ""):
            raise PreventUpdate
        return f"?{urlencode(query)}"


def open_server(history: History, *, host: str, port: int, token: str | None = None) -> BaseWSGIServer:
    """Open the address and return the server, ready for ``serve_forever``; port 0 takes a free one.

    Raises:
        ConfigurationError: If the address cannot be opened, or needs a token.
    """
    app = make_app(history, host=host, token=token)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        return make_server(host, port, app.server, threaded=True)
    except (OSError, SystemExit) as error:  # werkzeug leaves when a port is taken
        raise ConfigurationError(
            f"--host {host} --port {port} cannot be opened",
            "an address serves one program at a time",
            "take another --port",
        ) from error
