"""The digest of L1: what datasets and weights carry, so that residuals never meet another baseline."""

from __future__ import annotations

import ast
import hashlib
import inspect
from functools import cache
from types import ModuleType
from typing import Final

from .. import memory, observation, parameters
from ..l2 import heuristic as l2_goals
from ..parameters import Parameters
from . import baseline as l1_baseline
from . import risk as l1_risk
from . import safety as l1_safety
from . import thread as l1_thread

__all__ = ["L1_MODULES", "check_l1_digest", "l1_digest"]

L1_MODULES: Final[tuple[ModuleType, ...]] = (
    l1_baseline,
    l1_risk,
    l1_safety,
    l1_thread,
    l2_goals,
    memory,
    observation,
    parameters,
)
"""The modules whose code decides what the baseline does."""


@cache
def l1_digest() -> str:
    """Return the SHA-256 of the code of L1 and of the default parameters, in hexadecimal digits.

    Comments, docstrings and layout do not count.
    """
    known = hashlib.sha256()
    for module in L1_MODULES:
        known.update(f"{module.__name__.rpartition('.')[2]}\n{_code_of(module)}\n".encode())
    known.update(Parameters().to_json().encode())
    return known.hexdigest()


def _code_of(module: ModuleType) -> str:
    """Return a module's code without comments and docstrings, in a uniform layout."""
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [part for part in body if not _is_text(part)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def check_l1_digest(digest: str, what: str) -> None:
    """Make sure that something was made with the present L1.

    Args:
        digest: The digest that it carries.
        what: What it is, for the message.

    Raises:
        ValueError: If it was made with another L1.
    """
    present = l1_digest()
    if digest != present:
        raise ValueError(
            f"{what} was made with L1 {digest[:12]}…, present is {present[:12]}…; residuals would be added to another "
            "baseline, so make it again with this version, or use the version that made it"
        )
