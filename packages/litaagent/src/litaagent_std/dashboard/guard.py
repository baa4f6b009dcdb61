"""Access control: requests from this machine, or with the token. And what a page may load: nothing from elsewhere."""

from __future__ import annotations

import hmac
import ipaddress
from typing import Final
from urllib.parse import urlencode, urlsplit

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from apexrl.runs.errors import ConfigurationError

__all__ = ["COOKIE", "is_loopback", "protect", "require_token"]

COOKIE: Final = "lita_token"
_SHORTEST: Final = 8
_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_POLICY: Final = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; object-src 'none'; "
    "script-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)
"""Content security policy; plotly.js needs inline styles."""


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own and no other's."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def require_token(host: str, token: str | None) -> None:
    """Refuse an address that others can reach unless there is a token.

    Raises:
        ConfigurationError: If there is none, or a very short one.
    """
    if not is_loopback(host) and token is None:
        raise ConfigurationError(
            f"--host {host} can be reached from other machines",
            "only this machine may look without a token",
            "add --token WORD, or leave --host out",
        )
    if token is not None and (len(token) < _SHORTEST or not token.isascii()):
        raise ConfigurationError(
            f"--token has {len(token)} characters",
            f"it must have {_SHORTEST} or more, of ASCII",
            'take a long random one, such as that of: python -c "import secrets; print(secrets.token_urlsafe())"',
        )


def protect(app: Flask, host: str, token: str | None) -> None:
    """Check every request, and forbid the browser to load anything from elsewhere.

    Args:
        app: The application.
        host: The address it listens at.
        token: A secret that every request must carry, as a header, a cookie or ``?token=``; None for loopback.
    """

    @app.before_request
    def check() -> BaseResponse | None:
        if (request.content_length or 0) > (app.config["MAX_CONTENT_LENGTH"] or 0):
            return _refusal(413, "a request for a page has no body")
        if token is None:
            # DNS rebinding: a foreign name may resolve to this machine; then the request's Host is not ours.
            name = urlsplit(f"//{request.host}").hostname or ""
            return None if name in _NAMES or name == host else _refusal(403, "this address is not served here")
        return _checked(token)

    @app.after_request
    def add_headers(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response


def _checked(token: str) -> BaseResponse | None:
    """Let a request with the token pass; one with the token in its address is redirected, with a cookie, without it."""
    given = request.args.get("token")
    if given is not None and _same(given, token):
        rest = [(name, value) for name, value in request.args.items(multi=True) if name != "token"]
        answer = redirect("/" + request.path.lstrip("/") + (f"?{urlencode(rest)}" if rest else ""))
        answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
        return answer
    header = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if _same(header, token) or _same(request.cookies.get(COOKIE, ""), token):
        return None
    return _refusal(401, "a token is needed: open this address once with ?token=WORD behind it")


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _refusal(status: int, message: str) -> Response:
    return Response(message + "\n", status=status, mimetype="text/plain")
