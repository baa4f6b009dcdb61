"""The three packages have one version, the changelog describes it, and the lock pins what the constraints pin."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = ("apexrl", "hmasd", "litaagent")
PROJECTS = {
    name: tomllib.loads((ROOT / f"packages/{name}/pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in PACKAGES
}
VERSION = PROJECTS["apexrl"]["version"]


def requirements(project):
    """Return all requirements of a package, those of its extras included."""
    return [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]


def test_the_packages_and_the_citation_have_one_version():
    assert {project["version"] for project in PROJECTS.values()} == {VERSION}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"] == VERSION


def test_the_packages_require_each_other_in_this_major_version():
    major = int(VERSION.partition(".")[0])
    for name, project in PROJECTS.items():
        project.setdefault("optional-dependencies", {})
        for line in requirements(project):
            match = re.match(r"(apexrl|hmasd|litaagent)(\[\w+\])?", line)
            if match:
                assert line == f"{match[0]}>={major}.0,<{major + 1}", name


def test_the_newest_heading_of_the_changelog_is_this_version():
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0].split()[0] == VERSION
    assert len(set(headings)) == len(headings)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_readme_of_a_package_stands_alone(name):
    """A package index shows it without the repository: relative links lead nowhere there."""
    text = (ROOT / f"packages/{name}/README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []


def test_the_lock_has_the_versions_of_the_constraints_each_with_a_hash():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    hashed = set(re.findall(r"^(\S+==\S+) \\\n    --hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE))
    pinned = re.findall(r"^[^#\s]+==\S+$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(pinned) > 100
    assert hashed == {pin for pin in pinned if not pin.startswith("torch==")}


def test_continuous_integration_runs_every_supported_python():
    workflow = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    pythons = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert {"run": ".ci/run"} in workflow["jobs"]["test"]["steps"]
    for project in PROJECTS.values():
        classifiers = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
        assert classifiers == pythons
