"""Files of tuned parameters: the values, the command that made them, and the gain that was measured for them.

``lita:{"parameters": "FILE"}`` plays with the parameters of such a file. A name without a path, such as ``shipped``,
stands for the file of that name in `SHIPPED`, the folder of the tuned parameters that come with the package. A file may
also hold the bare parameters, as `Parameters.to_json` writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from apexrl.runs.digest import digest_config
from apexrl.runs.errors import ConfigurationError
from apexrl.runs.reading import read_json, reading
from litaagent_std.policy.parameters import Parameters

__all__ = ["FORMAT", "SHIPPED", "named_file", "parameter_file", "read_parameters"]

FORMAT: Final = "litaagent.parameters"
"""Marks a file that `lita tune` wrote; what it holds is under ``parameters``."""

SHIPPED: Final = Path(__file__).parent / "tuned"
"""Folder of the tuned parameters that come with the package."""


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


def parameter_file(name: str) -> Path:
    """Find the file that a name stands for.

    Raises:
        ConfigurationError: If there is none.
    """
    return named_file(name, SHIPPED, ".json", what="parameters", made_by="lita tune")


def read_parameters(name: str) -> dict[str, Any]:
    """Read parameters as plain data, checked.

    Args:
        name: A file, or the name of one that comes with the package.

    Raises:
        ConfigurationError: If there is no such file, or it does not hold parameters.
    """
    path = parameter_file(name)
    expected = "it must hold known names with values in their ranges, as lita tune writes them"
    with reading(path, ConfigurationError, expected, "correct the file, or make it again with lita tune"):
        content = read_json(path)
        if content.get("format") == FORMAT:
            if content.get("digest", ours := digest_config(content["parameters"])) != ours:
                raise ValueError("its parameters do not match its digest")
            content = content["parameters"]
        values = dict(content)
        Parameters.from_mapping(values)
        return values
