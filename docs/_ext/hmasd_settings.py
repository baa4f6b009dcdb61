"""Sphinx extension: write the table of HMASD settings from their class when the pages are built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmark_figures import write_if_new

from hmasd.config import markdown

GENERATED = Path(__file__).parents[1] / "_generated" / "hmasd_settings.md"


def setup(app: Any) -> dict[str, Any]:  # noqa: ANN401 - Sphinx's application; the tests need no Sphinx
    """Register with Sphinx."""
    app.connect("builder-inited", lambda _: write_if_new(GENERATED, markdown()))
    return {"parallel_read_safe": True}
