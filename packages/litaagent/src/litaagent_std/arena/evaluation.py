"""An evaluation: every agent plays the same seat of the same worlds, until all comparisons are decided."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any, Final

from apexrl.execution import Executor, RunOptions, Task
from litaagent_std.arena.seeds import SeedBlock
from litaagent_std.arena.sequential import ALPHA, FEWEST, Verdict, decide
from litaagent_std.arena.units import Units, unit_key
from litaagent_std.arena.worlds import Rules, draw, play_unit
from litaagent_std.policy.parameters import LEVELS, Level
from litaagent_std.tournament.competitors.names import Competitor

__all__ = ["Evaluation", "Plan", "Unit", "evaluate"]

logger = logging.getLogger(__name__)

WORLDS_PER_WORKER: Final = 8
"""Worlds per worker between two checks of which comparisons are decided."""

_DRAWS: Final = 1000
"""Worlds in a row that may be left out in search of one with the focal seat at the right level."""

Unit = dict[str, Any]
OnUnit = Callable[["Evaluation"], bool]


@dataclass(frozen=True, slots=True)
class Plan:
    """An evaluation before it is played.

    Attributes:
        focal: The agent that is evaluated.
        against: Those it is compared with.
        rules: What all worlds share.
        block: Where the seeds come from.
        worlds: Worlds at most.
        lead: The difference that is asked for.
        stop_early: Whether a comparison ends as soon as its answer is clear.
        alpha: Probability that the interval of a comparison ever misses.
        fewest: Worlds before which no answer is given but a very clear one; see `sequential`.
        precision: Half width of the interval up to which a clear answer is measured further.
        places: Levels of the chain (first, middle, last) at which the competitors differ. Worlds whose focal seat is
            elsewhere would end alike, so they are left out and do not count.
    """

    focal: Competitor
    against: tuple[Competitor, ...]
    rules: Rules
    block: SeedBlock
    worlds: int
    lead: float = 0.0
    stop_early: bool = True
    alpha: float = ALPHA
    fewest: int = FEWEST
    precision: float = math.inf
    places: tuple[Level, ...] = LEVELS

    def __post_init__(self) -> None:
        names = [competitor.name for competitor in (self.focal, *self.against)]
        if len(set(names)) < len(names):
            raise ValueError(f"the names {names} are not all different; name every competitor once")

    def indices(self) -> Iterator[int]:
        """Return the indices of the worlds to play, in order.

        Raises:
            ValueError: If there are none with the focal seat at one of these levels.
        """
        if set(self.places) >= set(LEVELS):
            return iter(range(self.worlds))
        return islice(self._fitting(), self.worlds)

    def _fitting(self) -> Iterator[int]:
        latest = -1
        for index in count():
            if draw(self.rules, self.block.seed(index)).level in self.places:
                latest = index
                yield index
            elif index - latest >= _DRAWS:
                raise ValueError(
                    f"none of {_DRAWS} worlds has the focal seat at {' or '.join(self.places)}; "
                    f"name a level that worlds of {self.rules.levels} levels have"
                )


@dataclass(slots=True)
class Evaluation:
    """An evaluation as far as it has come.

    Attributes:
        plan: What to play.
        units: Finished units by name and index of the world.
        failed: Units that could not be played, with the reason; they are tried again by the next start.
        played: Units that were played by this start.
    """

    plan: Plan
    units: dict[str, dict[int, Unit]] = field(default_factory=dict)
    failed: dict[tuple[str, int], str] = field(default_factory=dict)
    played: int = 0

    def shared(self, name: str) -> list[int]:
        """Return the indices of the worlds that both the focal agent and another played, in order."""
        return sorted(self.units.get(self.plan.focal.name, {}).keys() & self.units.get(name, {}).keys())

    def differences(self, name: str) -> list[float]:
        """Focal minus other, world by world."""
        own, other = self.units.get(self.plan.focal.name, {}), self.units.get(name, {})
        return [own[index]["score"] - other[index]["score"] for index in self.shared(name)]

    def verdict(self, name: str) -> Verdict:
        """Return what the comparison with another says; the same however many worlds were played beyond its end."""
        plan = self.plan
        return decide(
            self.differences(name),
            plan.lead,
            alpha=plan.alpha,
            stop=plan.stop_early,
            fewest=plan.fewest,
            precision=plan.precision,
        )

    def is_open(self, name: str) -> bool:
        """Whether a comparison continues: its answer is open, or not as precise as it should be."""
        verdict = self.verdict(name)
        return verdict.answer == "open" or not verdict.high - verdict.mean <= self.plan.precision

    def pairs(self, name: str) -> tuple[list[Unit], list[Unit]]:
        """Return the units of both sides in the worlds that the verdict rests on."""
        indices = self.shared(name)[: self.verdict(name).worlds]
        own, other = self.units.get(self.plan.focal.name, {}), self.units.get(name, {})
        return [own[index] for index in indices], [other[index] for index in indices]

    def open_competitors(self) -> tuple[Competitor, ...]:
        """Who still has to play: the focal agent, and those against whom the answer is not clear."""
        plan = self.plan
        still_open = tuple(other for other in plan.against if not plan.stop_early or self.is_open(other.name))
        return (plan.focal, *still_open) if still_open or not plan.against else ()


def evaluate(
    plan: Plan,
    store: Units,
    executor: Executor,
    *,
    time_limit: float = 3600.0,
    on_unit: OnUnit | None = None,
    code: str | None = None,
) -> Evaluation:
    """Play what is not played yet.

    Args:
        plan: What to play.
        store: Where finished units are and go.
        executor: What plays them; results do not depend on it.
        time_limit: Seconds that a world may take.
        on_unit: Called after every finished unit; the evaluation ends when it returns False.
        code: What to take for the version of the agents' code, see `unit_key`.

    Returns:
        The evaluation; complete unless ``on_unit`` ended it.
    """
    state = Evaluation(plan)
    step = WORLDS_PER_WORKER * executor.workers
    left = plan.indices()
    while competitors := state.open_competitors():
        indices = list(islice(left, step))
        if not indices:
            break
        waiting = list(_waiting(state, store, competitors, indices, code))
        if not _play(state, store, executor, waiting, time_limit, on_unit):
            break
    return state


def _waiting(
    state: Evaluation, store: Units, competitors: Sequence[Competitor], indices: Sequence[int], code: str | None
) -> Iterator[tuple[Competitor, int, str]]:
    """Take finished units from the store and yield the others with their keys, world by world."""
    plan = state.plan
    for index in indices:
        for competitor in competitors:
            key = unit_key(plan.rules, plan.block.seed(index), competitor.spec, code)
            unit = store.get(key)
            if unit is None:
                yield competitor, index, key
            else:
                state.units.setdefault(competitor.name, {})[index] = unit


def _play(
    state: Evaluation,
    store: Units,
    executor: Executor,
    waiting: Sequence[tuple[Competitor, int, str]],
    time_limit: float,
    on_unit: OnUnit | None,
) -> bool:
    """Play units and keep each as soon as it is finished; return whether to continue."""
    plan = state.plan
    if on_unit is not None and not on_unit(state):
        return False
    tasks = [
        Task(play_unit, (plan.rules, plan.block.seed(index), who.spec), label=f"{who.name} in world {index}")
        for who, index, _ in waiting
    ]
    with closing(executor.run(tasks, RunOptions(time_limit=time_limit, ordered=False))) as run:
        for result in run:
            who, index, key = waiting[result.index]
            if result.value is None:
                logger.warning("%s failed: %s", result.label, result.failure)
                state.failed[who.name, index] = str(result.failure)
            else:
                unit = {"agent": who.spec.path, "params": dict(who.spec.params), **result.value}
                store.put(key, unit)
                state.units.setdefault(who.name, {})[index] = unit
                state.played += 1
            if on_unit is not None and not on_unit(state):
                return False
    return True
