"""72 official worlds on the fast engine: scores, contracts and every turn as digests."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from benchmarks.ablations import LitaL1
from benchmarks.golden.fingerprints import Fingerprint, Row, report
from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.agents.variants import (
    REFERENCE,
    LitaAgentBaseline,
    LitaAgentCautious,
    LitaAgentGreedy,
    LitaAgentHRLTracked,
)
from litaagent_std.agents.variants_shielded import ShieldedPenguin
from litaagent_std.arena.worlds import Rules, draw
from litaagent_std.tournament.competitors.integer_offers import integer_path
from litaagent_std.world.events import (
    AgentError,
    ContractSigned,
    DayEnd,
    DayStart,
    Settlement,
    WorldObserver,
    WorldStart,
)
from litaagent_std.world.reproducible.silence import silence
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, WorldSetup, class_path, official_setup

Place = Literal["first", "middle", "last"]
Inventory = Literal["as_shipped", "depleting"]
Draw = Literal["placed", "official", "arena", "filled"]
Defaults = Literal["native", "hosted"]

_TEAMS_2024: Final = "scml_agents.scml2024.standard"
_TEAMS_2025: Final = "scml_agents.scml2025.standard"
FINALISTS: Final = {
    "penguin": f"{_TEAMS_2024}.team_penguin.PenguinAgent",
    "cautious_2024": f"{_TEAMS_2024}.team_miyajima_std.CautiousStdAgent",
    "dog": f"{_TEAMS_2024}.team_181.DogAgent",
    "ax": f"{_TEAMS_2024}.team_178.AX",
    "quick": f"{_TEAMS_2024}.teamyuzuru.QuickDecisionAgent",
    "as0": f"{_TEAMS_2025}.team_atsunaga.AS0",
    "sora": f"{_TEAMS_2025}.team_254.UltraSuperMiracleSoraFinalAgentZ",
    "trend": f"{_TEAMS_2025}.team_280.PriceTrendStdAgent",
}
"""The finalists of two years that are quick enough."""

_PARAMETERS: Final = {
    "hold": 0.55,
    "risk_budget": 0.2,
    "stock_target": 0.8,
    "drift_weight": 0.5,
    "overrides": {"first": {"buy_urgency": 0.3}, "middle": {"buy_curve": 1.5}, "last": {"hold": 0.1}},
}


@dataclass(frozen=True, slots=True)
class Case:
    """A world to play.

    Attributes:
        seed: Seed of its draw and of its random streams.
        ours: Our agents by place in the chain and variant, such as ``middle:default``; of draws other than ``placed``
            the place is not obeyed.
        finalists: Other competitors, see `FINALISTS`; ``int:`` before a name casts its offers to whole numbers.
        days: Days.
        levels: Production levels.
        inventory: The rule of inventory: whether production consumes input stock.
        draw: Who chooses the seats: ``placed`` by place; ``official`` by the official draw; ``arena`` as the arena
            draws; ``filled`` competitors in all seats.
        neutral: Whether ids leave out the initials of classes.
        defaults: Who plays the league's default agents.
    """

    seed: int
    ours: tuple[str, ...]
    finalists: tuple[str, ...] = ()
    days: int = 50
    levels: int = 3
    inventory: Inventory = "as_shipped"
    draw: Draw = "placed"
    neutral: bool = True
    defaults: Defaults = "native"


def cases() -> list[Case]:
    """List the worlds; the first eight are cheap and cover places, rules of inventory and lengths of the chain."""
    as_shipped: Inventory = "as_shipped"
    depleting: Inventory = "depleting"
    listed: list[tuple[Place, int, Inventory, str]] = [
        ("first", 100, as_shipped, "as0"),
        ("middle", 100, depleting, "penguin"),
        ("last", 100, as_shipped, "int:as0"),
        ("first", 100, depleting, "dog"),
        ("middle", 100, as_shipped, "ax"),
        ("last", 100, depleting, "cautious_2024"),
        ("first", 50, as_shipped, "sora"),
        ("middle", 50, depleting, "trend"),
        ("last", 50, as_shipped, "quick"),
        ("first", 50, depleting, "int:sora"),
    ]
    quick = [
        Case(1, ("first:default",), ("penguin",)),
        Case(2, ("middle:default",), inventory=depleting),
        Case(3, ("last:default",), ("as0",), neutral=False),
        Case(4, ("first:default",), inventory=depleting, levels=2),
        Case(5, ("middle:default",), levels=4),
        Case(6, ("last:default",), ("int:penguin",), inventory=depleting),
        Case(7, ("middle:parameters",)),
        Case(8, ("last:baseline", "first:greedy"), levels=2),
    ]
    plain = [
        Case(100 + number, (f"{place}:default",), (name,), days, 2 + number % 3, inventory, neutral=number % 4 != 3)
        for number, (place, days, inventory, name) in enumerate(listed)
    ]
    twice = [
        Case(200, ("first:default", "last:default"), ("penguin",), 100, 4),
        Case(201, ("first:default", "middle:default"), ("as0",), 50, 3, depleting),
        Case(202, ("middle:default", "middle:default"), (), 100, 3),
        Case(203, ("middle:default", "last:default"), ("penguin", "as0"), 50, 4, depleting, neutral=False),
        Case(204, ("first:default", "middle:default", "last:default"), ("as0",), 50, 3),
        Case(205, ("last:default", "last:default"), (), 100, 2, depleting),
    ]
    variants = [
        Case(300, ("first:baseline",), ("penguin",)),
        Case(301, ("middle:baseline",), (), 50, 4, depleting),
        Case(302, ("last:greedy",), ("as0",), 50, 3, depleting),
        Case(303, ("middle:greedy",), (), 100, 3),
        Case(304, ("middle:cautious",), ("penguin",)),
        Case(305, ("last:cautious", "first:cautious"), (), 50, 2, depleting),
        Case(306, ("first:tracked",)),
        Case(307, ("middle:l1",), ("penguin",)),
        Case(308, ("first:l1", "last:l1"), (), 50, 3, depleting),
        Case(309, ("middle:parameters",), ("as0",)),
        Case(310, ("first:parameters", "last:parameters"), (), 100, 2, depleting),
        Case(311, ("middle:baseline_joint",)),
        Case(312, ("last:baseline_joint",), (), 50, 2, depleting),
        Case(313, ("middle:shielded",), ("as0",)),
        Case(314, ("first:shielded", "last:shielded"), (), 50, 3, depleting),
        Case(315, ("last:shielded",), ("penguin",), 100, 4),
    ]
    learned = [
        Case(400, ("middle:learned_l2",), ("penguin",), 100, 3, depleting),
        Case(401, ("first:learned_l2", "middle:learned_l2", "last:learned_l2"), (), 50, 4),
        Case(402, ("middle:new_all",), ("as0",)),
        Case(403, ("middle:learned_all",), ("penguin",)),
        Case(404, ("first:learned_all", "last:learned_all"), (), 50, 2, depleting),
        Case(405, ("middle:learned_l2",), ("penguin",)),
        Case(406, ("first:learned_l2",), (), 50, 2, depleting),
        Case(407, ("middle:learned_l3",)),
        Case(408, ("last:learned_l3",), (), 50, 2, depleting),
        Case(409, ("middle:learned_l4",)),
        Case(410, ("first:learned_l4",), (), 50, 3, depleting),
        Case(411, ("middle:learned_all",), ("as0",)),
    ]
    drawn = [
        Case(500, ("any:default",), ("penguin", "as0"), 50, 3, draw="official", neutral=False),
        Case(501, ("any:default", "any:baseline"), ("as0",), 100, 2, depleting, "official"),
        Case(502, ("any:default",), ("penguin",), 50, 4, draw="official"),
        Case(503, ("any:default",), ("penguin", "as0"), 50, 3, draw="arena"),
        Case(504, ("any:default",), ("as0", "ax"), 100, 2, depleting, "arena"),
        Case(505, ("any:default",), ("penguin", "as0"), 50, 2, draw="filled"),
        Case(600, ("middle:default",), ("penguin",), 50, 3, defaults="hosted"),
        Case(601, ("last:default",), (), 50, 2, depleting, neutral=False, defaults="hosted"),
    ]
    typed = [
        Case(700, ("first:types",), ("penguin",)),
        Case(701, ("middle:types",), (), inventory=depleting),
        Case(702, ("last:types",), ("as0",), neutral=False),
        Case(703, ("first:types",), (), 50, 2, depleting),
        Case(704, ("middle:types",), ("ax",), 50, 4),
        Case(705, ("last:types",), ("int:penguin",), 50, 3, depleting),
        Case(706, ("first:types", "middle:types", "last:types"), (), 50, 3),
        Case(707, ("middle:types", "last:types"), ("as0",), 50, 4, depleting, neutral=False),
        Case(708, ("any:types",), ("penguin", "as0"), 50, 3, draw="arena"),
        Case(709, ("any:types",), ("as0", "ax"), 50, 2, depleting, "arena"),
        Case(710, ("middle:types_learned_l4",)),
        Case(711, ("any:types",), ("penguin",), 50, 3, draw="official"),
    ]
    return [*quick, *plain, *twice, *variants, *learned, *drawn, *typed]


@cache
def variant_spec(name: str, folder: Path) -> AgentSpec:
    """Find the class and the parameters of one of our variants; made weights are written into a folder first.

    All settings are written out (`REFERENCE`), so that the worlds stay as pinned when defaults change.
    """
    reference = dict(REFERENCE["parameters"])
    typed = {**REFERENCE, "l3": "types", "parameters": {**reference, "urgency_low": 0.6, "urgency_high": 1.0}}
    if "learned" in name:
        layers = ("l2", "l3", "l4") if name == "learned_all" else (name.partition("learned_")[2],)
        base = typed if name.startswith("types") else REFERENCE
        params = {**base, "weights": str(made_layers(folder)), **dict.fromkeys(layers, "learned")}
        return AgentSpec(class_path(LitaAgentHRL), params, competitor=True)
    if name == "new_all":  # untrained networks: the heuristic agent
        params = {**REFERENCE, "weights": str(new_layers(folder)), **dict.fromkeys(("l2", "l3", "l4"), "learned")}
        return AgentSpec(class_path(LitaAgentHRL), params, competitor=True)
    known: dict[str, tuple[type, dict[str, Any]]] = {
        "default": (LitaAgentHRL, dict(REFERENCE)),  # LitaAgentV1 by its settings; ids show the class
        "baseline": (LitaAgentBaseline, {"parameters": reference}),
        "greedy": (LitaAgentGreedy, {"l2": "heuristic", "l3": "model", "parameters": reference}),
        "cautious": (LitaAgentCautious, {"l2": "heuristic", "l3": "model", "parameters": reference}),
        "tracked": (LitaAgentHRLTracked, dict(REFERENCE)),
        "l1": (LitaL1, {"parameters": reference}),
        "parameters": (LitaAgentHRL, {**REFERENCE, "parameters": {**reference, **_PARAMETERS}}),
        "baseline_joint": (LitaAgentHRL, {**REFERENCE, "l3": "baseline"}),
        "types": (LitaAgentHRL, typed),
        "shielded": (ShieldedPenguin, dict(REFERENCE)),
    }
    agent, given = known[name]
    return AgentSpec(class_path(agent), given, competitor=True)


def made_layers(folder: Path) -> Path:
    """Write networks of all layers whose weights are all random, and return their folder."""
    from litaagent_std.hrl_xf.acceptance import AcceptanceModel
    from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
    from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
    from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
    from litaagent_std.hrl_xf.training.export import export_layer
    from litaagent_std.policy.digest import l1_digest
    from litaagent_std.policy.features import features_digest

    target = folder / "layers"
    if target.exists():
        return target
    target.mkdir(parents=True)
    meta = {"horizon": 10, "features_digest": features_digest(), "l1_digest": l1_digest()}
    models: dict[str, Any] = {
        "l2": HorizonManagerPPO(40, 10, dim=16),
        "l3": TemporalDecisionTransformer(40, 10, dim=16, layers=1),
        "acceptance": AcceptanceModel(40, 10, dim=16),
        "l4": ThreadCoordinator(dim=16, layers=1),
    }
    rng = np.random.default_rng(4)
    for name, model in models.items():
        for parameter in model.parameters():  # heads begin with zeros, which would pin nothing
            shape = tuple(parameter.shape)
            parameter.data.copy_(parameter.new_tensor(rng.normal(0.0, 0.15, shape).astype(np.float32)))
        export_layer(model, target / f"{name}.npz", meta)
    return target


def new_layers(folder: Path) -> Path:
    """Write untrained networks as online training starts with, and return their folder."""
    from litaagent_std.hrl_xf.online.methods.networks import untrained

    return untrained(("l2", "l3", "l4"), 0, {"l2": 16, "l3": 16, "l4": 16}).save(folder / "new")


def finalist_path(name: str) -> str:
    """Find the class of a finalist."""
    path = FINALISTS[name.removeprefix("int:")]
    return integer_path(path) if name.startswith("int:") else path


def make_setup(case: Case, folder: Path) -> tuple[WorldSetup, dict[int, str]]:
    """Draw a world and seat its agents; also returns the labels of the competitors by seat."""
    ours = [(word.partition(":")[2], variant_spec(word.partition(":")[2], folder)) for word in case.ours]
    others = [(name, AgentSpec(finalist_path(name), competitor=True)) for name in case.finalists]
    if case.draw == "arena":
        rules = Rules(tuple(spec.path for _, spec in others), days=(case.days,), levels=case.levels)
        world = draw(rules, case.seed)
        setup = world.with_agent(ours[0][1])
    elif case.draw == "placed":
        setup = official_setup(case.seed, n_days=case.days, n_levels=case.levels)
        setup = setup.with_agents(_placed(case, setup, [spec for _, spec in ours], [spec for _, spec in others]))
    else:
        fill: Literal["defaults", "competitors"] = "competitors" if case.draw == "filled" else "defaults"
        setup = official_setup(
            case.seed, [spec for _, spec in ours + others], fill=fill, n_days=case.days, n_levels=case.levels
        )
    setup = replace(setup, neutral_names=case.neutral)
    names = [(spec.path, dict(spec.params), name) for name, spec in ours + others]
    labels = {
        seat: next(name for path, params, name in names if path == agent.path and params == dict(agent.params))
        for seat, agent in enumerate(setup.agents)
        if agent.competitor
    }
    return setup, labels


def _placed(
    case: Case, setup: WorldSetup, ours: Sequence[AgentSpec], others: Sequence[AgentSpec]
) -> dict[int, AgentSpec]:
    """Seat our agents at their places, and the others in the seats after, level by level."""
    levels = {"first": 0, "middle": setup.n_levels // 2 if setup.n_levels > 2 else 0, "last": setup.n_levels - 1}
    found: dict[int, AgentSpec] = {}
    for word, spec in zip(case.ours, ours, strict=True):
        level = levels[word.partition(":")[0]]
        seats = [seat for seat, factory in enumerate(setup.factories) if factory.level == level and seat not in found]
        found[seats[case.seed % len(seats)]] = spec
    for place, spec in enumerate(others):
        free = [seat for seat in range(setup.n_seats) if seat not in found]
        found[free[(7 * case.seed + 5 * place) % len(free)]] = spec
    return found


class Story(WorldObserver):
    """Fingerprints of all events of a world, seats for names."""

    def __init__(self) -> None:
        self.contracts, self.exogenous, self.turns = Fingerprint(), Fingerprint(), Fingerprint()
        self.settlements, self.days, self.bankruptcies = Fingerprint(), Fingerprint(), Fingerprint()
        self.errors: dict[str, int] = {}
        self._seats: dict[str, int] = {}

    def _seat(self, agent: str) -> int:
        return self._seats.get(agent, -1)

    def on_world_start(self, event: WorldStart) -> None:
        """Take the seats' numbers."""
        self._seats = {agent: seat for seat, agent in enumerate(event.agents)}

    def on_day_start(self, event: DayStart) -> None:
        """Take in the day's exogenous contracts, prices, balances and inventories."""
        for one in event.exogenous:
            buyer, seller = self._seat(one.buyer), self._seat(one.seller)
            self.exogenous.add(event.day, buyer, seller, one.product, one.quantity, one.unit_price)
        self.days.add("start", event.day, *event.trading_prices, *event.balances, *event.inventories)
        for issue in event.issues:
            self.days.add("issue", *(bound for pair in issue for bound in pair))

    def on_contract(self, event: ContractSigned) -> None:
        """Take in a contract."""
        ref = event.negotiation
        partners = (self._seat(agent) for agent in (ref.caller, ref.partner, ref.buyer, ref.seller))
        self.contracts.add(ref.day, ref.index, *partners, ref.product, event.quantity, event.time, event.unit_price)

    def on_turn(self, turn: tuple[int, ...]) -> None:
        """Take in a response and an offer."""
        self.turns.add(",".join(map(str, map(int, turn))))

    def on_settlement(self, event: Settlement) -> None:
        """Take in a factory's day."""
        self.settlements.add(
            event.day,
            self._seat(event.agent),
            event.input_quantity,
            event.output_quantity,
            event.produced,
            event.profit,
            event.balance,
            event.inventory_input,
            event.shortfall_quantity,
            event.shortfall_penalty,
            event.storage_cost,
        )

    def on_day_end(self, event: DayEnd) -> None:
        """Take in the evening."""
        self.days.add("end", event.day, *event.trading_prices, *event.sold_quantities, *event.balances, *event.bankrupt)

    def on_bankruptcy(self, day: int, agent: str, balance: float) -> None:
        """Take in a bankruptcy."""
        self.bankruptcies.add(day, self._seat(agent), balance)

    def on_error(self, event: AgentError) -> None:
        """Count an exception of an agent."""
        name = f"{self._seat(event.agent)} {event.kind}"
        self.errors[name] = self.errors.get(name, 0) + 1


def setup_digest(setup: WorldSetup) -> str:
    """Fingerprint a configuration without its agents, values only."""
    known = Fingerprint()
    known.add(setup.seed, setup.n_days, *setup.catalog_prices)
    known.add(setup.n_rounds, setup.horizon, setup.price_range, setup.quantity_multiplier)
    for one in setup.factories:
        costs = (*one.shortfall_penalty, *one.storage_cost, *one.disposal_cost)
        known.add(one.level, one.cost, one.n_lines, one.balance, *costs)
    for contract in setup.exogenous:
        known.add(
            contract.day,
            contract.product,
            contract.quantity,
            contract.unit_price,
            contract.seller,
            contract.buyer,
        )
    daily = setup.daily_costs()
    for table in (daily.shortfall_penalty, daily.storage_cost, daily.disposal_cost):
        known.add(*table.ravel().tolist())
    return known.digest


def play_case(number: int, case: Case, folder: Path) -> Row:
    """Play a world and describe it."""
    setup, labels = make_setup(case, folder)
    story = Story()
    with silence():
        end = run_world(setup, observers=[story], inventory=case.inventory, defaults=case.defaults)
    return {
        "case": number,
        "seed": case.seed,
        "settings": {
            "days": case.days,
            "levels": case.levels,
            "inventory": case.inventory,
            "draw": case.draw,
            "neutral_names": case.neutral,
            "defaults": case.defaults,
            "ours": list(case.ours),
            "finalists": list(case.finalists),
        },
        "seats": {f"{seat:02}@{setup.factories[seat].level}": label for seat, label in sorted(labels.items())},
        "setup": setup_digest(setup),
        "scores": [float(score).hex() for score in end.scores.values()],
        "days_played": end.days,
        "n_contracts": story.contracts.count,
        "contracts": story.contracts.digest,
        "n_exogenous": story.exogenous.count,
        "exogenous": story.exogenous.digest,
        "n_turns": story.turns.count,
        "turns": story.turns.digest,
        "settlements": story.settlements.digest,
        "days": story.days.digest,
        "bankruptcies": story.bankruptcies.digest,
        "errors": story.errors,
        "limit_fired": end.limit_fired,
    }


def run_worlds(options: argparse.Namespace) -> list[Row]:
    """Play the worlds that are asked for."""
    chosen = list(enumerate(cases()))[:: options.only][: options.first]
    rows = []
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        for number, case in chosen:
            began = time.process_time()
            rows.append(play_case(number, case, Path(folder)))
            report(options, f"world {number} {case.ours} {case.days} days: {time.process_time() - began:.2f} CPU s")
    return rows
