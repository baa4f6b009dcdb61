import subprocess
from importlib import metadata

from apexrl.runs import provenance
from apexrl.runs.provenance import git_commit, package_versions


def git(folder, *arguments: str) -> str:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    result = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return result.stdout.strip()


def test_versions_cover_python_and_what_is_required():
    versions = package_versions()

    assert {"python", "torch", "numpy", "apexrl"} <= versions.keys()
    assert versions["numpy"] == metadata.version("numpy")
    users = [installed for installed in metadata.distributions() if "apexrl" in provenance._requirements(installed)]
    assert {installed.name for installed in users} <= versions.keys(), "packages built on it count too"
    assert package_versions("no-such-distribution").keys() == {"python"}


def test_the_commit_is_that_of_the_tracked_source(tmp_path):
    assert git_commit(tmp_path / "code.py") is None
    git(tmp_path, "init", "-q")
    code = tmp_path / "code.py"
    code.write_text("1")
    assert git_commit(code) is None, "not tracked yet"
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-q", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD")

    assert git_commit(code) == head
    (tmp_path / "note.txt").write_text("untracked files change nothing")
    assert git_commit(code) == head
    code.write_text("2")
    assert git_commit(code) == f"{head}-dirty"


def test_without_git_there_is_no_commit(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))

    assert git_commit(provenance.Path(provenance.__file__)) is None
