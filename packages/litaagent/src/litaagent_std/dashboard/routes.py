"""From an address to a page. Whatever is wrong with the data becomes a page that says so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from apexrl.runs.errors import UserFacingError
from litaagent_std.dashboard.history import History, ItemKind, NotHereError
from litaagent_std.dashboard.page import Link, Page, Text
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


def query_of(search: str) -> dict[str, str]:
    """Return the parameters of an address; of one that is given twice, the last counts."""
    return dict(parse_qsl(search.removeprefix("?"), keep_blank_values=True, max_num_fields=20))


def page_at(history: History, path: str, search: str) -> Page:
    """Return the page of an address; never raises for what the data or the address hold."""
    try:
        return _page(history, path, query_of(search))
    except UserFacingError as error:
        return _trouble(str(error))
    except (KeyError, TypeError, ValueError, IndexError, OSError) as error:
        # Data of a form that no release wrote: the log has the details, the page goes on.
        logger.exception("the page %s%s failed", path, search)
        return _trouble(f"what is stored there has a form that this release does not know ({type(error).__name__})")


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


def _trouble(message: str) -> Page:
    return Page(title="This cannot be shown", blocks=[Text(message, "error")], trail=[Link("all", "/")])
