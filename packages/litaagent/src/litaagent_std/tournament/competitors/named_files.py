"""Files that options name: by their path, or by the name of one that comes with the package."""

from __future__ import annotations

from pathlib import Path

from apexrl.runs.errors import ConfigurationError

__all__ = ["named_file"]


def named_file(name: str | Path, shipped: Path, ending: str, *, what: str, made_by: str) -> Path:
    """Find the file that a name stands for.

    Args:
        name: A path, or the name of a file in ``shipped`` without its ending.
        shipped: Folder of the files that come with the package.
        ending: Their ending, with the dot.
        what: What such files hold, for the message.
        made_by: The command that makes them, for the message.

    Raises:
        ConfigurationError: If there is none.
    """
    for path in (Path(name), shipped / f"{name}{ending}"):
        if path.is_file():
            return path
    names = ", ".join(sorted(path.stem for path in shipped.glob(f"*{ending}"))) or "there are none yet"
    raise ConfigurationError(
        f"there is no file of {what} {str(name)!r}",
        f"{what} come from a file, or by the name of one of the package: {names}",
        f"correct the name, or make the file with {made_by}",
    )
