"""``lita serve``: tournaments, evaluations and trainings in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError

__all__ = ["Config", "run"]


@configuration
class Config:
    """Show tournaments, evaluations and trainings in the browser.

    Everything under PATH is shown, also while it still grows. Nothing is loaded from elsewhere, and nobody else can
    look unless you name a --host and a --token. Needs the extra `dashboard`.
    """

    path: Annotated[Path, Positional] = Path(".")
    """Folder with tournaments, evaluations and trainings, at any depth up to four."""

    host: str = "127.0.0.1"
    """Address to listen at; another than this machine's own needs --token."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8050
    """Port to listen at; 0 takes a free one."""

    token: str | None = None
    """A word that every request must carry; open the page once with ?token=WORD behind its address."""


def run(config: Config) -> int:
    """Serve until Ctrl-C."""
    try:
        from litaagent_std.dashboard.history import History
        from litaagent_std.dashboard.server import open_server
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package {error.name!r} is missing",
            "lita serve needs the extra `dashboard`",
            "pip install litaagent[dashboard]",
        ) from error
    if not config.path.is_dir():
        raise ConfigurationError(
            f"{str(config.path)!r} is no folder", "PATH is a folder with tournaments or trainings", "correct the path"
        )
    server = open_server(History(config.path), host=config.host, port=config.port, token=config.token)
    query = "" if config.token is None else "/?token=WORD"
    print(f"http://{config.host}:{server.server_port}{query} shows {config.path}; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("ended")
    finally:
        server.server_close()
    return 0
