"""From an address to a page. An error in the data or the address becomes a page that describes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from apexrl.runs.errors import UserFacingError
from apexrl.runs.reading import MALFORMED
from litaagent_std.dashboard.history import History, ItemKind, NotHereError
from litaagent_std.dashboard.page import Link, Page
from litaagent_std.dashboard.views.agent import agent_page
from litaagent_std.dashboard.views.arena import arena_page
from litaagent_std.dashboard.views.home import home_page
from litaagent_std.dashboard.views.negotiation import negotiation_page
from litaagent_std.dashboard.views.tournament import tournament_page
from litaagent_std.dashboard.views.training import training_page
from litaagent_std.dashboard.views.world import world_page

__all__ = ["page_at", "query_of"]

logger = logging.getLogger(__name__)

View = Callable[[Path, str, Mapping[str, str]], Page]

_VIEWS: Final[dict[str, tuple[ItemKind, View]]] = {
    "/tournament": ("tournament", tournament_page),
    "/agent": ("tournament", agent_page),
    "/world": ("tournament", world_page),
    "/negotiation": ("tournament", negotiation_page),
    "/arena": ("arena", arena_page),
}
_TRAININGS: Final[dict[str, ItemKind]] = {"/training": "training", "/hmasd": "hmasd"}
_LISTS: Final = frozenset({"compare"})  # parameters with several values
_MOST_FIELDS: Final = 20


def query_of(search: str, *, strict: bool = True) -> dict[str, str]:
    """Return the parameters of an address.

    Of a parameter that occurs twice the last value counts; values of a list are joined with commas.

    Args:
        search: The query, with or without the question mark.
        strict: Whether too many parameters are an error; if not, there are none.

    Raises:
        ValueError: If there are too many parameters.
    """
    try:
        pairs = parse_qsl(search.removeprefix("?"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        if strict:
            raise
        return {}
    query: dict[str, str] = {}
    for name, value in pairs:
        query[name] = f"{query[name]},{value}" if name in _LISTS and name in query else value
    return query


def page_at(history: History, path: str, search: str) -> Page:
    """Return the page of an address; never raises for what the data or the address contain."""
    try:
        return _page(history, path, query_of(search))
    except NotHereError as error:
        return _error_page(str(error), 404)
    except UserFacingError as error:
        return _error_page(str(error))
    except (OSError, *MALFORMED) as error:
        # Data in a format that no release wrote: the log has the details, and the server continues.
        logger.exception("the page %s%s failed", path, search)
        return _error_page(f"what is stored there has a form that this release does not know ({type(error).__name__})")


def _page(history: History, path: str, query: Mapping[str, str]) -> Page:
    if path in {"", "/"}:
        return home_page(history)
    name = query.get("name", "")
    if path in _VIEWS:
        kind, view = _VIEWS[path]
        return view(history.find(kind, name), name, query)
    if path in _TRAININGS:
        return training_page(history, _TRAININGS[path], name, query)
    raise NotHereError(
        f"there is no page {path[:100]!r}", f"pages are {', '.join([*_VIEWS, *_TRAININGS])}", "start at /"
    )


def _error_page(message: str, status: int = 200) -> Page:
    return Page(
        template="error",
        title="This cannot be shown",
        context={"error": message},
        trail=[Link("all", "/")],
        status=status,
    )
