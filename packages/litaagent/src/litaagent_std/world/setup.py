"""Everything that determines a world: an official configuration, the agents in its seats, and a seed.

A :class:`WorldSetup` is plain, frozen data. Both engines build their worlds from it. It can be sent to another
process as JSON, and its digest names it. :func:`official_setup` draws one with scml's own generator.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, Literal

import numpy as np

from litaagent_std.world.reproducible.clock import MAX_ROUNDS
from litaagent_std.world.reproducible.streams import Stream, install, numpy_stream, switch
from litaagent_std.world.rules.exogenous import ExogenousContract

install()  # scml is imported below, and it must bind the dispatching functions

from negmas.serialization import deserialize  # noqa: E402
from scml.oneshot.agent import OneShotAgent  # noqa: E402
from scml.oneshot.common import OneShotProfile  # noqa: E402
from scml.utils import anac2024_config_generator_std  # noqa: E402

__all__ = [
    "AgentSpec",
    "DailyCosts",
    "ExogenousContract",
    "Factory",
    "WorldSetup",
    "class_path",
    "full_name",
    "official_setup",
]

Fill = Literal["defaults", "competitors"]

OFFICIAL_DAYS: Final = (50, 200)
OFFICIAL_LEVELS: Final = (2, 4)
OFFICIAL_COMPETITORS: Final = (2, 4)
OFFICIAL_MIN_FACTORIES: Final = 4
OFFICIAL_MAX_FACTORIES: Final = 6
N_ROUNDS: Final = 20
HORIZON: Final = 10


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """The agent of a seat, by the path of its class.

    Attributes:
        path: ``module.Class``.
        params: Keyword arguments of the constructor; values must be plain data.
        competitor: Whether the seat counts in a tournament (False for the league's default agents).
    """

    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    competitor: bool = False

    def load(self) -> type[OneShotAgent]:
        """Import the class.

        Raises:
            TypeError: If the path does not name an agent of the league.
        """
        module, _, name = self.path.rpartition(".")
        agent_type = getattr(import_module(module), name)
        if not (isinstance(agent_type, type) and issubclass(agent_type, OneShotAgent)):
            raise TypeError(
                f"{self.path} is {agent_type!r}, but a seat needs a subclass of scml's OneShotAgent "
                "(StdAgent and StdSyncAgent are such); give the path of the agent's class"
            )
        return agent_type


@dataclass(frozen=True, slots=True)
class Factory:
    """The private facts of a factory; see scml's ``OneShotProfile``.

    Attributes:
        level: Its level; it buys product ``level`` and sells product ``level + 1``.
        cost: Production cost per unit.
        n_lines: Units it can produce per day.
        balance: Initial balance.
        shortfall_penalty: Mean and standard deviation of the penalty, relative to the output's price.
        storage_cost: Mean and standard deviation of the storage cost, relative to the input's price.
        disposal_cost: Mean and standard deviation of the disposal cost, relative to the input's price.
    """

    level: int
    cost: int
    n_lines: int
    balance: int
    shortfall_penalty: tuple[float, float]
    storage_cost: tuple[float, float]
    disposal_cost: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def from_profile(cls, profile: OneShotProfile, balance: int) -> Factory:
        """Make a factory from scml's profile."""
        return cls(
            level=int(profile.input_product),
            cost=int(profile.cost),
            n_lines=int(profile.n_lines),
            balance=int(balance),
            shortfall_penalty=(float(profile.shortfall_penalty_mean), float(profile.shortfall_penalty_dev)),
            storage_cost=(float(profile.storage_cost_mean), float(profile.storage_cost_dev)),
            disposal_cost=(float(profile.disposal_cost_mean), float(profile.disposal_cost_dev)),
        )

    def profile(self) -> OneShotProfile:
        """Make scml's profile of the factory."""
        return OneShotProfile(
            cost=self.cost,
            input_product=self.level,
            n_lines=self.n_lines,
            shortfall_penalty_mean=self.shortfall_penalty[0],
            shortfall_penalty_dev=self.shortfall_penalty[1],
            storage_cost_mean=self.storage_cost[0],
            storage_cost_dev=self.storage_cost[1],
            disposal_cost_mean=self.disposal_cost[0],
            disposal_cost_dev=self.disposal_cost[1],
        )


@dataclass(frozen=True, slots=True)
class DailyCosts:
    """The relative costs of each seat on each day, float64 arrays of shape (seats, days)."""

    shortfall_penalty: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    storage_cost: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    disposal_cost: np.ndarray[tuple[int, int], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class WorldSetup:
    """A world before it starts; engine, observers and limits are chosen when it is run.

    Attributes:
        seed: Seeds the world's stream and every seat's stream.
        n_days: Days to run.
        catalog_prices: Initial trading price of every product.
        factories: In seat order, level by level.
        exogenous: In the generator's order, which is the order of execution within a day.
        agents: One per seat.
        n_rounds: Rounds of every negotiation.
        horizon: Days ahead that deliveries can be agreed for.
        price_range: Half width of the price issue around the trading price.
        quantity_multiplier: Largest quantity of an offer, in multiples of the lines.
        neutral_names: Whether ids leave out the initials of the agent's class (scml's ``agent_name_reveals_type`` off).
            Agents iterate over sets of ids: if the agent of a seat is exchanged, only neutral names keep that order.
    """

    seed: int
    n_days: int
    catalog_prices: tuple[int, ...]
    factories: tuple[Factory, ...]
    exogenous: tuple[ExogenousContract, ...]
    agents: tuple[AgentSpec, ...]
    n_rounds: int = N_ROUNDS
    horizon: int = HORIZON
    price_range: float = 0.1
    quantity_multiplier: int = 3
    neutral_names: bool = False

    def __post_init__(self) -> None:
        if len(self.factories) != len(self.agents):
            raise ValueError(
                f"{len(self.factories)} factories have {len(self.agents)} agents; every seat needs exactly one"
            )
        if not 1 <= self.n_rounds <= MAX_ROUNDS:
            raise ValueError(
                f"n_rounds is {self.n_rounds}; virtual time stays below a second only from 1 to {MAX_ROUNDS} rounds"
            )
        levels = [factory.level for factory in self.factories]
        if levels != sorted(levels) or set(levels) != set(range(self.n_levels)):
            raise ValueError(
                f"the factories' levels are {levels}; with {len(self.catalog_prices)} products they must "
                f"rise from 0 to {self.n_levels - 1}, each level having at least one factory"
            )

    @property
    def n_levels(self) -> int:
        """Number of production levels."""
        return len(self.catalog_prices) - 1

    @property
    def n_seats(self) -> int:
        """Number of factories."""
        return len(self.factories)

    def daily_costs(self) -> DailyCosts:
        """Draw the relative costs of every seat and day, ``|N(mean, deviation)|``.

        The draws depend on the seed and the seat alone.
        """
        shape = (self.n_seats, self.n_days)
        costs = DailyCosts(np.empty(shape), np.empty(shape), np.empty(shape))
        for seat, factory in enumerate(self.factories):
            rng = numpy_stream(self.seed, f"costs/{seat}")
            for name in ("disposal_cost", "storage_cost", "shortfall_penalty"):
                mean, deviation = getattr(factory, name)
                getattr(costs, name)[seat] = np.abs(rng.randn(self.n_days) * deviation + mean)
        return costs

    def with_agents(self, agents: Mapping[int, AgentSpec]) -> WorldSetup:
        """Return the same world with other agents in some seats."""
        return replace(self, agents=tuple(agents.get(seat, old) for seat, old in enumerate(self.agents)))

    def with_seed(self, seed: int) -> WorldSetup:
        """Return the same configuration with another seed."""
        return replace(self, seed=seed)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold; ``neutral_names`` is left out when False."""
        data = _fields(self)
        for name in ("factories", "exogenous", "agents"):
            data[name] = tuple(_fields(item) for item in data[name])
        for agent in data["agents"]:
            agent["params"] = dict(agent["params"])
        if not self.neutral_names:
            del data["neutral_names"]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorldSetup:
        """Read what :meth:`to_dict` wrote, directly or through JSON."""
        values = dict(data)
        values["catalog_prices"] = tuple(values["catalog_prices"])
        values["factories"] = tuple(_read_factory(factory) for factory in values["factories"])
        values["exogenous"] = tuple(ExogenousContract(**contract) for contract in values["exogenous"])
        values["agents"] = tuple(AgentSpec(**agent) for agent in values["agents"])
        return cls(**values)

    @property
    def digest(self) -> str:
        """Name of the setup: SHA-256 of its canonical JSON."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _fields(item: object) -> dict[str, Any]:
    """Return the fields of a dataclass with slots; much faster than ``asdict`` for thousands of contracts."""
    return {name: getattr(item, name) for name in type(item).__slots__}  # type: ignore[attr-defined]


def _read_factory(data: Mapping[str, Any]) -> Factory:
    pairs = {name: tuple(value) for name, value in data.items() if isinstance(value, (list, tuple))}
    return Factory(**{**data, **pairs})


def class_path(agent: type | str) -> str:
    """Return the ``module.Class`` path of a class, or the path itself.

    Raises:
        ValueError: If the class lives inside a function, where another process could not import it.
    """
    if isinstance(agent, str):
        return agent
    if "<locals>" in agent.__qualname__ or "." in agent.__qualname__:
        raise ValueError(f"{agent.__qualname__} is not at the top level of a module; move it there")
    return full_name(agent)


def full_name(agent_type: type) -> str:
    """Return ``module.Class`` of any class."""
    return f"{agent_type.__module__}.{agent_type.__qualname__}"


def official_setup(
    seed: int,
    competitors: Sequence[AgentSpec | type | str] = (),
    *,
    fill: Fill = "defaults",
    n_days: int | tuple[int, int] = OFFICIAL_DAYS,
    n_levels: int | tuple[int, int] = OFFICIAL_LEVELS,
    n_competitors: int | None = None,
) -> WorldSetup:
    """Draw a world of the official tournament from scml's generator.

    The draw depends on the arguments alone. The competitors are assigned to their seats in a random order. If there
    are more competitors than seats, they are sampled; if there are fewer, they are repeated.

    Args:
        seed: Seed of the draw, and of the world.
        competitors: Agents to seat; if empty, all seats go to the league's default agents.
        fill: Who gets the other seats: the league's ``defaults`` as in the official mix, or ``competitors`` again.
        n_days: Days, or a range to draw from.
        n_levels: Production levels, or a range to draw from.
        n_competitors: Number of competitors' seats; if None, 2 to 4 are drawn, as in the tournament.

    Raises:
        ValueError: If there are too few days for a product to pass all levels, or no competitors for their seats.
    """
    fewest, most = min(_range(n_days)), max(_range(n_levels))
    if fewest <= most:
        raise ValueError(f"{fewest} days are too few for {most} levels; scml's generator needs at least {most + 1}")
    stream = Stream.from_key(seed, "setup")
    previous = switch(stream)
    try:
        if n_competitors is None:
            n_competitors = random.randint(*OFFICIAL_COMPETITORS) if competitors else 0
        [config] = anac2024_config_generator_std(
            n_competitors=n_competitors,
            n_agents_per_competitor=1,
            n_steps=n_days,
            n_processes=n_levels,
            min_factories_per_level=OFFICIAL_MIN_FACTORIES,
            max_factories_per_level=OFFICIAL_MAX_FACTORIES,
            publish_exogenous_summary=True,
            publish_trading_prices=True,
        )
        specs = [_as_competitor(agent) for agent in competitors]
        agents = _seat_agents(config["agent_types"], specs, fill)
    finally:
        switch(previous)
    return _from_scml(seed, deserialize(config["world_params"]["__exact_params"]), agents)


def _range(value: int | tuple[int, int]) -> tuple[int, ...]:
    return (value,) if isinstance(value, int) else tuple(value)


def _as_competitor(agent: AgentSpec | type | str) -> AgentSpec:
    if isinstance(agent, AgentSpec):
        return replace(agent, competitor=True)
    return AgentSpec(class_path(agent), competitor=True)


def _seat_agents(types: list[str | None], competitors: list[AgentSpec], fill: Fill) -> tuple[AgentSpec, ...]:
    if not competitors and (None in types or fill == "competitors"):
        raise ValueError("there are seats for competitors, but competitors is empty; pass competitors=[...]")
    seats: list[AgentSpec | None] = [None if path is None else AgentSpec(path) for path in types]
    if fill == "competitors":
        seats = [None] * len(types)
    empty = [index for index, spec in enumerate(seats) if spec is None]
    random.shuffle(empty)
    waiting: list[AgentSpec] = []
    for seat in empty:
        if not waiting:
            waiting = random.sample(competitors, len(competitors))
        seats[seat] = waiting.pop()
    return tuple(spec for spec in seats if spec is not None)


def _from_scml(seed: int, config: Mapping[str, Any], agents: tuple[AgentSpec, ...]) -> WorldSetup:
    factories = tuple(
        Factory.from_profile(profile, balance)
        for profile, balance in zip(config["profiles"], config["initial_balance"], strict=True)
    )
    exogenous = tuple(
        ExogenousContract(
            day=int(c.time),
            product=int(c.product),
            quantity=int(c.quantity),
            unit_price=int(c.unit_price),
            seller=int(c.seller),
            buyer=int(c.buyer),
        )
        for c in config["exogenous_contracts"]
    )
    prices = tuple(int(price) for price in config["catalog_prices"])
    return WorldSetup(int(seed), int(config["n_steps"]), prices, factories, exogenous, agents)
