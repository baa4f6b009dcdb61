"""Pages as HTML through Jinja2: the same templates for the server and for the report.

Autoescape is on, so that names from the data are text. A missing variable is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from apexrl.charts import CONFIG, plotly_figure
from litaagent_std.dashboard.page import Link, Page

__all__ = ["STATIC", "package_version", "plotly_script", "render_page", "render_report"]

STATIC: Final = Path(__file__).parent / "static"
_TEMPLATES: Final = Path(__file__).parent / "templates"


def render_page(page: Page, query: Mapping[str, str], source_address: str) -> str:
    """Return a page of the server as HTML.

    Args:
        page: The page.
        query: Parameters of its address; filters keep those that they do not set.
        source_address: Where the source code of the running version is.
    """
    body = _body(page, is_report=False, query=query)
    return (
        _environment()
        .get_template("layout.html")
        .render(page=page, body=body, source_address=source_address, version=package_version())
    )


def render_report(pages: Sequence[Page], title: str) -> str:
    """Return pages as one HTML file that loads nothing: styles, scripts and plotly.js are part of it."""
    return (
        _environment()
        .get_template("report.html")
        .render(
            title=title,
            sections=[(page.title, _body(page, is_report=True, query={})) for page in pages],
            style=(STATIC / "dashboard.css").read_text(encoding="utf-8"),
            plotly=plotly_script().read_text(encoding="utf-8"),
            draw=(STATIC / "charts.js").read_text(encoding="utf-8"),
            version=package_version(),
        )
    )


def plotly_script() -> Path:
    """Return the path of plotly.js, which the package plotly contains."""
    return Path(str(files("plotly").joinpath("package_data", "plotly.min.js")))


@cache
def package_version() -> str:
    """Return the version of the installed package."""
    try:
        return version("litaagent")
    except PackageNotFoundError:  # sources on the path, not installed
        return "unknown"


def _body(page: Page, *, is_report: bool, query: Mapping[str, str]) -> str:
    """Return the part of a page below its heading."""
    template = _environment().get_template(f"{page.template}.html")
    return template.render(**page.context, is_report=is_report, query=query)


def _is_link(value: Any) -> bool:  # noqa: ANN401 - a cell of a table or any other value
    return isinstance(value, Link)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False}  # plotly.js reads strict JSON
    environment.tests["link"] = _is_link
    environment.filters["figure"] = plotly_figure
    environment.globals["plotly_config"] = CONFIG
    return environment
