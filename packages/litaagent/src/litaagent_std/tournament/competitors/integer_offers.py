"""Agents whose offers are cast to whole numbers before negmas sees them.

negmas 0.16 checks an offer before it casts it: a price of 10.7 is no value of an integer issue, so the offer becomes
None and the negotiation ends. Agents written for older versions are silenced by that. For an agent class ``a.b.C``,
the path ``litaagent_std.tournament.competitors.integer_offers.a:b:C`` names a subclass that is the same agent with the
fraction of every offered number dropped, as older versions did. It can be imported by that path in any process.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, MutableMapping
from numbers import Real
from typing import Any, Final

from litaagent_std.world.isolated import open_path
from litaagent_std.world.reproducible.streams import install
from litaagent_std.world.setup import AgentSpec

install()  # negmas is imported below, and it must bind the dispatching functions

from negmas.sao import SAOResponse, SAOSyncController  # noqa: E402

__all__ = ["FORMER_PREFIX", "integer_path", "original_path"]

_PREFIX: Final = f"{__name__}."
FORMER_PREFIX: Final = "litaagent_std.market.integer_offers."
"""How paths of casting subclasses began in records of earlier releases."""


def integer_path(path: str) -> str:
    """Return the path of the casting subclass of the class at ``path``; of such a path, itself."""
    return path if path.startswith(_PREFIX) else _PREFIX + path.replace(".", ":")


def original_path(path: str) -> str:
    """Return the path of an agent's own class, without integer cast and isolation."""
    path = open_path(path)
    return path.removeprefix(_PREFIX).replace(":", ".") if path.startswith(_PREFIX) else path


def __getattr__(name: str) -> type:
    if ":" not in name:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    agent: type = AgentSpec(name.replace(":", ".")).load()
    return _casting(agent)


@functools.cache
def _casting(agent: type) -> type:
    """Make the subclass; its name and module stay those of the agent, whose state is kept under them."""
    names = ["first_proposals", "counter_all"] if issubclass(agent, SAOSyncController) else []
    if getattr(agent, "propose", None) is not SAOSyncController.propose:
        names.append("propose")
    casts: dict[str, Callable[[Any], Any]] = {
        "propose": _whole,
        "first_proposals": _whole_offers,
        "counter_all": _whole_responses,
    }
    methods = {name: _after(getattr(agent, name), casts[name]) for name in names}
    identity = {"__module__": agent.__module__, "__qualname__": agent.__qualname__, "__doc__": agent.__doc__}
    return type(agent)(agent.__name__, (agent,), methods | identity)


def _after(method: Callable[..., Any], cast: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def casting(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the agent's own method
        return cast(method(*args, **kwargs))

    return casting


def _whole(offer: Any) -> Any:  # noqa: ANN401 - agents offer anything
    """Cast an offer if it is one, and leave everything else as it is."""
    if isinstance(offer, SAOResponse):
        return _whole_response(offer)
    if not isinstance(offer, tuple | list) or all(type(value) is int for value in offer):
        return offer
    # by way of float: numpy's integers do not know math.trunc
    return tuple(
        math.trunc(float(value)) if isinstance(value, Real) and math.isfinite(value) else value for value in offer
    )


def _whole_offers(offers: Any) -> Any:  # noqa: ANN401 - agents return anything
    return _each(offers, _whole)


def _whole_responses(responses: Any) -> Any:  # noqa: ANN401 - agents return anything
    return _each(responses, _whole_response)


def _each(replies: Any, cast: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - agents return anything
    """Cast the reply to each partner; replies in which nothing changes are passed on as they are."""
    if not isinstance(replies, MutableMapping):
        return replies
    changed = {partner: after for partner, before in replies.items() if (after := cast(before)) is not before}
    if not changed:
        return replies
    replies = copy.copy(replies)
    replies.update(changed)
    return replies


def _whole_response(response: Any) -> Any:  # noqa: ANN401 - agents return anything
    if isinstance(response, SAOResponse):
        offer = _whole(response.outcome)
        return response if offer is response.outcome else SAOResponse(response.response, offer, response.data)
    if isinstance(response, tuple) and len(response) >= 2 and isinstance(response[1], tuple | list):
        return (response[0], _whole(response[1]), *response[2:])
    return response
