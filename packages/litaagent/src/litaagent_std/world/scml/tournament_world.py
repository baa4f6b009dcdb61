"""The fast engine in negmas' tournaments: a ``world_generator`` that replaces scml's.

In a call of negmas::

    from scml.utils import anac2024_config_generator_std, anac_assigner_std, balance_calculator_std
    tournament(..., world_generator=fast_world_generator, config_generator=anac2024_config_generator_std,
               config_assigner=anac_assigner_std, score_calculator=balance_calculator_std)

scml's own generator makes the world, so that names, types, folders and everything else that a tournament reads are
scml's. Then the fast engine runs its days with the same agents and writes the statistics that scml would write.
Exceptions of agents are counted and never stop a world.
"""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
from scml.oneshot.agent import OneShotAgent
from scml.std.world import SCML2024StdWorld
from scml.utils import anac2024_std_world_generator

from litaagent_std.world.events import (
    AgentError,
    ContractSigned,
    DayEnd,
    NegotiationEnd,
    NegotiationRef,
    Settlement,
    WorldObserver,
)
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.setup import AgentSpec, DailyCosts, ExogenousContract, Factory, WorldSetup, full_name


def fast_world_generator(**kwargs: Any) -> TournamentWorld:  # noqa: ANN401 - scml's parameters
    """Generate a world with scml's generator, to be run by the fast engine."""
    return TournamentWorld.adopt(anac2024_std_world_generator(**kwargs))


class TournamentWorld(SCML2024StdWorld):  # type: ignore[misc]
    """scml's world with days run by the fast engine; made by `adopt`."""

    fast: FastWorld

    @classmethod
    def adopt(cls, world: SCML2024StdWorld) -> TournamentWorld:
        """Take over a world of scml that has not started.

        Raises:
            TypeError: If an agent was not written for this league.
        """
        agents = [adapter.adapted_object for adapter in world.non_system_agents]
        for agent in agents:
            if not isinstance(agent, OneShotAgent):
                raise TypeError(
                    f"{type(agent).__name__} is no OneShotAgent; agents of the older league need scml's own world"
                )
        setup = _setup_of(world, agents)
        world.__class__ = cls
        world.fast = FastWorld(setup, [_Statistics(world)], agents=agents, costs=_costs_of(world))
        return world  # type: ignore[no-any-return]  # an SCML2024StdWorld until its class was changed

    def step(self, *args: Any, **kwargs: Any) -> bool:  # noqa: ANN401 - negmas' parameters
        """Run one day and return whether there was one to run.

        Raises:
            ValueError: If single negotiation rounds are asked for.
        """
        if args or kwargs.get("n_neg_steps") is not None:
            raise ValueError("the fast engine runs whole days; use FastWorld.play() to decide round by round")
        if self.current_step >= self.n_steps:
            return False
        started = time.perf_counter()
        if self.current_step == 0:
            self._start_time: float = started
        self.fast.step_day()
        taken = time.perf_counter() - started
        before = self._stats["total_time"]
        self._stats["step_time"].append(taken)
        before.append(taken + (before[-1] if before else 0.0))
        self._current_step += 1
        self.frozen_time = self.time
        return True


class _Statistics(WorldObserver):
    """Writes the statistics of scml's world from the events of the fast one.

    Args:
        world: scml's world.
    """

    def __init__(self, world: Any) -> None:  # noqa: ANN401 - scml has no types
        self._world = world
        self._day: dict[str, float] = {}

    def on_negotiation_start(self, negotiation: NegotiationRef) -> None:
        """Count a negotiation."""
        world = self._world
        self._count("n_negotiations")
        world.negs_initiated[negotiation.caller] += 1
        world.neg_requests_sent[negotiation.caller] += 1
        for agent in (negotiation.caller, negotiation.partner):
            world.negs_registered[agent] += 1
            world.neg_requests_received[agent] += 1

    def on_negotiation_end(self, event: NegotiationEnd) -> None:
        """Count how a negotiation ended."""
        world, ref = self._world, event.negotiation
        succeeded = event.agreement is not None
        self._count("n_negotiation_successful" if succeeded else "n_negotiation_failed")
        for agent in (ref.caller, ref.partner):
            (world.negs_succeeded if succeeded else world.negs_failed)[agent] += 1
            if event.status == "timedout":
                world.negs_timedout[agent] += 1

    def on_contract(self, event: ContractSigned) -> None:
        """Count a contract."""
        for name in ("n_contracts_concluded", "n_contracts_signed"):
            self._count(name)
        for agent in (event.negotiation.caller, event.negotiation.partner):
            self._world.contracts_concluded[agent] += 1
            self._world.contracts_signed[agent] += 1

    def on_error(self, event: AgentError) -> None:
        """Record an exception."""
        entry = (event.day, f"{event.kind} in {event.where}: {event.message}")
        self._world.agent_exceptions[event.agent].append(entry)

    def on_settlement(self, event: Settlement) -> None:
        """Record a factory's day."""
        world, agent = self._world, event.agent
        world._profits[agent].append(np.float64(event.profit))
        world._inventory_input[agent] = event.inventory_input
        world._input_quantity[agent] = event.input_quantity
        world._output_quantity[agent] = event.output_quantity
        world._productivity[agent] = event.produced / world.agent_profiles[agent].n_lines
        world._shortfall_quantity[agent] = event.shortfall_quantity
        world._shortfall_penalty[agent] = event.shortfall_penalty
        world._storage_cost[agent] = event.storage_cost

    def on_day_end(self, event: DayEnd) -> None:
        """Record prices and bankruptcies, and close the day's statistics."""
        world, day = self._world, event.day
        for product, price in enumerate(event.trading_prices):
            world._trading_price[product, day + 1 :] = price
            world._sold_quantity[product, day + 1] = event.sold_quantities[product]
        for agent, bankrupt in zip(world.non_system_agent_names, event.bankrupt, strict=True):
            world.is_bankrupt[agent] = bankrupt
        world.post_step_stats()
        for name in _COUNTED:
            world._stats[name].append(self._day.get(name, 0))
        self._day = {}

    def _count(self, name: str) -> None:
        self._day[name] = self._day.get(name, 0) + 1


_COUNTED = (
    "n_negotiations",
    "n_negotiation_successful",
    "n_negotiation_failed",
    "n_contracts_concluded",
    "n_contracts_signed",
)


def _setup_of(world: Any, agents: list[OneShotAgent]) -> WorldSetup:  # noqa: ANN401 - scml has no types
    ids = world.non_system_agent_names
    seats = {agent: seat for seat, agent in enumerate(ids)}
    exogenous = tuple(
        ExogenousContract(
            day=day,
            product=int(contract.annotation["product"]),
            quantity=int(contract.agreement["quantity"]),
            unit_price=int(contract.agreement["unit_price"]),
            seller=seats.get(contract.annotation["seller"], -1),
            buyer=seats.get(contract.annotation["buyer"], -1),
        )
        for day in sorted(world.exogenous_contracts)
        for contract in world.exogenous_contracts[day]
    )
    return WorldSetup(
        seed=random.getrandbits(63),
        n_days=int(world.n_steps),
        catalog_prices=tuple(int(price) for price in world.catalog_prices),
        factories=tuple(
            Factory.from_profile(world.agent_profiles[agent], world.initial_balances[agent]) for agent in ids
        ),
        exogenous=exogenous,
        agents=tuple(AgentSpec(full_name(type(agent))) for agent in agents),
        n_rounds=int(world.neg_n_steps),
        horizon=int(world.horizon),
        price_range=float(world.price_range_fraction),
        quantity_multiplier=int(world.quantity_multiplier),
    )


def _costs_of(world: Any) -> DailyCosts:  # noqa: ANN401 - scml has no types
    ids = world.non_system_agent_names
    return DailyCosts(
        shortfall_penalty=np.array([world.agent_shortfall_penalty[agent] for agent in ids]),
        storage_cost=np.array([world.agent_storage_cost[agent] for agent in ids]),
        disposal_cost=np.array([world.agent_disposal_cost[agent] for agent in ids]),
    )
