"""Seats with their agents and ids, made from a setup as scml would make them."""

from __future__ import annotations

from collections.abc import Sequence

from scml.oneshot.agent import OneShotAgent
from scml.oneshot.common import SYSTEM_BUYER_ID, SYSTEM_SELLER_ID

from litaagent_std.world.fast.interface.ufun import UFunFactory
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.reproducible.isolation import load_fresh
from litaagent_std.world.reproducible.streams import WorldStreams, switch
from litaagent_std.world.setup import WorldSetup


def make_agents(setup: WorldSetup, streams: WorldStreams) -> list[OneShotAgent]:
    """Construct all agents, each under its own stream."""
    agents = []
    for agent_type, spec, stream in zip(load_fresh(setup.agents), setup.agents, streams.seats, strict=True):
        previous = switch(stream)
        try:
            agents.append(agent_type(**spec.params))
        finally:
            switch(previous)
    return agents


def make_seats(setup: WorldSetup, streams: WorldStreams, agents: Sequence[OneShotAgent]) -> tuple[Seat, ...]:
    """Assign the agents to their seats."""
    return tuple(
        Seat(
            index,
            agent,
            agent_name(index, None if setup.neutral_names else type(agent).__name__, factory.level),
            streams[index],
            factory.profile(),
            factory.balance,
        )
        for index, (agent, factory) in enumerate(zip(agents, setup.factories, strict=True))
    )


def agent_name(seat: int, class_name: str | None, level: int) -> str:
    """Return the id of the factory in a seat, as scml makes it.

    It holds seat, initials of the agent's class and level (``03Gr@0``); a neutral id has no initials (``03@0``).

    Args:
        seat: Number of the seat.
        class_name: Name of the agent's class; None for a neutral id.
        level: The factory's level.
    """
    return f"{seat:02}{'' if class_name is None else _initials(class_name)}@{level:01}"


def _initials(class_name: str) -> str:
    shortened = class_name.replace("Agent", "").replace("OneShot", "")
    capitals = "".join(letter for letter in shortened if letter.isupper())[:3]
    if len(capitals) == 3:  # scml uses three capitals where there are three
        return capitals
    if len(class_name) > 3:  # and else the first two letters
        return class_name[:2]
    if len(class_name) > 1:
        return class_name[0] + class_name[1 : 1 + (3 - len(capitals))] + class_name[1:]
    return class_name * 3


def trade_partners(seats: tuple[Seat, ...], n_products: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return the ids of all suppliers and of all consumers, by product, system agents included."""
    suppliers: list[list[str]] = [[] for _ in range(n_products)]
    consumers: list[list[str]] = [[] for _ in range(n_products)]
    suppliers[0].append(SYSTEM_SELLER_ID)
    consumers[-1].append(SYSTEM_BUYER_ID)
    for seat in seats:
        suppliers[seat.level + 1].append(seat.id)
        consumers[seat.level].append(seat.id)
    return suppliers, consumers


def make_ufun_factory(seat: Seat, suppliers: list[list[str]], consumers: list[list[str]]) -> UFunFactory:
    """Make the factory of the seat's utility functions."""
    return UFunFactory(
        agent_id=seat.id,
        level=seat.level,
        n_levels=len(suppliers) - 1,
        n_lines=seat.profile.n_lines,
        cost=seat.profile.cost,
        suppliers=suppliers[seat.level],
        consumers=consumers[seat.level + 1],
    )
