"""Packages whose names are imported when they are first used (PEP 562).

A package that re-exports names of heavy modules stays cheap to import::

    if TYPE_CHECKING:
        from package.heavy import Heavy  # type checkers and editors see the names
    else:
        __getattr__, __dir__ = lazy_names(__name__, {"package.heavy": ("Heavy",)})
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]], distribution: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: Name of the package.
        modules: The names that each module provides.
        distribution: Installed distribution whose version is the package's ``__version__``. Default: none.
    """
    home = {name: module for module, names in modules.items() for name in names}

    def get(name: str) -> Any:  # noqa: ANN401 - any of the names
        if name == "__version__" and distribution is not None:
            from importlib.metadata import version  # slow to import

            return version(distribution)
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)  # the next access is a plain one
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *(("__version__",) if distribution else ())})

    return get, names
