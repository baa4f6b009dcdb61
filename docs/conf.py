"""Configuration of the documentation build (``make docs``)."""

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "LitaAgent HRL-XF"
author = "The LitaAgent developers"
copyright = "2026, the LitaAgent developers"
release = importlib.metadata.version("litaagent")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "benchmark_figures",
    "hmasd_settings",
    "model_cards",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_generated/*.md", "_templates"]
templates_path = ["_templates"]
SOURCES = Path(__file__).parents[1].glob("packages/*/src")
autosummary_context = {  # a page per folder: the modules of a folder are sections of its page
    "packages": sorted(
        ".".join(path.relative_to(source).parts[:-1]) for source in SOURCES for path in source.rglob("__init__.py")
    )
}
# Named here, because autosummary looks for new pages only in the build after the one that found them.
autosummary_generate = sorted(f"api/{page.name}" for page in (Path(__file__).parent / "api").glob("*.md"))
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "signature"
suppress_warnings = ["ref.python"]  # names of types that several modules have: the pages show them without a link
autodoc_member_order = "bysource"
napoleon_use_ivar = True  # attributes of named tuples would be described twice
nitpicky = False
html_theme = "furo"
html_title = project
html_static_path: list[str] = []
