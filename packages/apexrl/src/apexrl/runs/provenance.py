"""What a run was made with: package versions and git commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

_DISTRIBUTION = "apexrl"


def package_versions(distribution: str = _DISTRIBUTION) -> dict[str, str]:
    """Return versions of Python, of a distribution, of those built on it, and of everything that they require.

    Args:
        distribution: A distribution; if it is not installed, only Python's version is returned.
    """
    required = {installed.name: _requirements(installed) for installed in metadata.distributions()}
    users = {name for name, names in required.items() if distribution in names} | ({distribution} & required.keys())
    names = users | {name for user in users for name in required[user]}
    versions = {"python": platform.python_version()}
    for name in sorted(names):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # an extra that is not installed
    return versions


def _requirements(distribution: metadata.Distribution) -> set[str]:
    """Return the names of the distributions that one requires, those of its extras included."""
    return {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in distribution.requires or []}


def git_commit(source: Path | None = None) -> str | None:
    """Return the commit that holds a source file, with ``-dirty`` if tracked files were changed since.

    Args:
        source: A file of the code that runs; if None, this package.

    Returns:
        None if there is no git or no repository, or if the repository does not track the file (an installed
        package in an ignored folder).
    """
    file = Path(source or __file__).resolve()
    if _git(file, "ls-files", "--error-unmatch", "--", file.name) is None:
        return None
    commit = _git(file, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(file, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if changes else commit


def _git(file: Path, *arguments: str) -> str | None:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # reading must not disturb a concurrent git
    try:
        result = subprocess.run(
            ["git", *arguments],
            cwd=file.parent,
            env=environment,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip()
