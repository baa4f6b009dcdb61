"""The pages of the Python API reach every module of every package."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "api"
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/src/*/__init__.py"))


def listed(page):
    """Return the modules that a page lists; the pages of their submodules follow from `:recursive:`."""
    block = re.search(r"\.\. autosummary::\n   :toctree: \S+\n   :recursive:\n\n((?:   \S+\n)+)", page.read_text())
    return set(block[1].split())


def modules(package):
    """Return the modules and packages directly in a package, without its entry point and private ones."""
    files = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/__init__.py")}
    return {f"{package.name}.{name}" for name in files if not name.startswith("_")}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_module_has_a_page(package):
    assert listed(API / f"{package.name}.md") == modules(package)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_folder_of_sources_is_a_package(package):
    """`:recursive:` follows packages alone."""
    folders = {path.parent for path in package.rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("package", [p for p in PACKAGES if p.name != "lita"], ids=lambda package: package.name)
def test_the_page_names_what_the_package_offers(package):
    names = set(__import__(package.name).__all__) - {"__version__"}
    text = (API / f"{package.name}.md").read_text()
    assert {name for name in names if f"`{name}`" not in text} == set()
