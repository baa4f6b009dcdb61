"""``lita serve`` and ``lita report``: tournaments, evaluations and trainings in the browser or as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError


@configuration
class ServeConfig:
    """Show tournaments, evaluations and trainings in the browser.

    Everything under PATH is shown, also while it still grows. Pages load nothing from elsewhere, and other machines
    have no access unless you give a --host and a --token. Needs the extra `dashboard`.
    """

    path: Annotated[Path, Positional] = Path(".")
    """Folder with tournaments, evaluations and trainings, up to four folders deep; or an address of records such as
    s3://bucket/path."""

    host: str = "127.0.0.1"
    """Address to listen on; any but this machine's own needs --token."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8050
    """Port to listen on; 0 takes a free one."""

    token: str | None = None
    """A secret that every request must carry; open the page once with ?token=WORD appended to its address."""

    source_url: str | None = None
    """Address of this version's source code, for the link on every page. Default: /source.zip, an archive of the
    installed packages."""


def serve(config: ServeConfig) -> int:
    """Serve until Ctrl-C."""
    try:
        from litaagent_std.dashboard.history import History
        from litaagent_std.dashboard.server import open_server
        from litaagent_std.records.storage.remote import local_path
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package {error.name!r} is missing",
            "`lita serve` needs the extra `dashboard`",
            "install it: pip install 'litaagent[dashboard]'",
        ) from error
    path = local_path(config.path)
    if not path.is_dir():
        raise ConfigurationError(
            f"{str(config.path)!r} is not a folder",
            "PATH is a folder with tournaments or trainings",
            "correct the path",
        )
    server = open_server(
        History(path), host=config.host, port=config.port, token=config.token, source_url=config.source_url
    )
    query = "" if config.token is None else f"/?{urlencode({'token': config.token})}"
    print(f"http://{config.host}:{server.server_port}{query} shows {config.path}; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("ended")
    finally:
        server.server_close()
    return 0


@configuration
class ReportConfig:
    """Write a report of tournaments, evaluations of the arena and trainings as one HTML file.

    The file loads nothing from elsewhere and can be sent by mail. The same figures are written as PNG and SVG into a
    folder beside it. Needs the extra `dashboard`.
    """

    paths: Annotated[tuple[Path, ...], Positional]
    """Folders of tournaments, evaluations, trainings or HMASD runs, or addresses of tournaments such as
    s3://bucket/path; each becomes a part of the report."""

    output: Path | None = None
    """The file to write. Default: report.html in the first folder; of an address, in this folder."""

    world: int | None = None
    """Of a tournament, the world to show in detail. Default: the first finished one."""

    agent: str | None = None
    """Of a tournament, a competitor to show too. Of ours also its reasons, if they were recorded (--reasons)."""

    figures: bool = True
    """Also write every figure as PNG and SVG, beside the report."""


def report(config: ReportConfig) -> int:
    """Write the report and its figures, and print their paths."""
    try:
        from litaagent_std.dashboard.report import make_report, pages_of
        from litaagent_std.records.storage.remote import is_remote, local_path
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package {error.name!r} is missing",
            "`lita report` needs the extra `dashboard`",
            "install it: pip install 'litaagent[dashboard]'",
        ) from error
    if not config.paths:
        raise ConfigurationError(
            "no PATH is given", "`lita report` needs at least one folder", "name the folder of a tournament"
        )
    pages = [page for path in config.paths for page in pages_of(local_path(path), config.world, config.agent)]
    first = config.paths[0]
    output = config.output or (Path() if is_remote(first) else first) / "report.html"
    written = make_report(pages, output, title=config.paths[0].resolve().name, figures=config.figures)
    print(f"{written[0]}: {written[0].stat().st_size / 1e6:.1f} MB, to be opened in a browser")
    if config.figures:
        print(f"{written[1].parent if len(written) > 1 else output.parent}: {len(written) - 1} figures as PNG and SVG")
    return 0
