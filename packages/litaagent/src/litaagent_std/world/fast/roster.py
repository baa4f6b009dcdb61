"""Who sits where: seats with their agents, made from a setup as scml would make them."""

from __future__ import annotations

from collections.abc import Sequence

from scml.oneshot.agent import OneShotAgent
from scml.oneshot.common import SYSTEM_BUYER_ID, SYSTEM_SELLER_ID, OneShotProfile

from litaagent_std.world.fast.interface.ufun import UFunFactory
from litaagent_std.world.fast.naming import agent_name
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.reproducible.isolation import load_fresh
from litaagent_std.world.reproducible.streams import WorldStreams, switch
from litaagent_std.world.setup import Factory, WorldSetup


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
    """Seats the agents."""
    return tuple(
        Seat(
            index,
            agent,
            agent_name(index, None if setup.neutral_names else type(agent).__name__, factory.level),
            streams[index],
            _profile(factory),
            factory.balance,
        )
        for index, (agent, factory) in enumerate(zip(agents, setup.factories, strict=True))
    )


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
    """Return what makes the seat's utility functions."""
    return UFunFactory(
        agent_id=seat.id,
        level=seat.level,
        n_levels=len(suppliers) - 1,
        n_lines=seat.profile.n_lines,
        cost=seat.profile.cost,
        suppliers=suppliers[seat.level],
        consumers=consumers[seat.level + 1],
    )


def _profile(factory: Factory) -> OneShotProfile:
    return OneShotProfile(
        cost=factory.cost,
        input_product=factory.level,
        n_lines=factory.n_lines,
        shortfall_penalty_mean=factory.shortfall_penalty[0],
        shortfall_penalty_dev=factory.shortfall_penalty[1],
        storage_cost_mean=factory.storage_cost[0],
        storage_cost_dev=factory.storage_cost[1],
        disposal_cost_mean=factory.disposal_cost[0],
        disposal_cost_dev=factory.disposal_cost[1],
    )
