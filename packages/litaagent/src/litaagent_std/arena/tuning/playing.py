"""Playing for a tuning run: worlds by level, and units that are played once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from apexrl.execution import Executor, RunOptions, Task
from apexrl.runs.errors import UserFacingError
from litaagent_std.arena.seeds import MAX_INDEX, SeedBlock
from litaagent_std.arena.units import UnitLog, unit_key
from litaagent_std.arena.worlds import Rules, draw, play_unit
from litaagent_std.policy.parameters import Level
from litaagent_std.world.setup import AgentSpec

__all__ = ["VALIDATION_START", "Interrupted", "Player", "WorldFailedError"]

VALIDATION_START: Final = (MAX_INDEX + 1) // 2
"""Index of the tuning block from which validation takes its worlds; the search takes them from 0 on."""

_CHUNK: Final = 32


class Interrupted(Exception):  # noqa: N818 - no error: somebody asked to stop
    """Somebody asked to stop; everything finished is kept."""


class WorldFailedError(UserFacingError):
    """A world could not be played."""


def level_of(rules: Rules, seed: int) -> str:
    """Return the level of the focal seat of a world; what a worker does."""
    return draw(rules, seed).level


class Player:
    """Plays units of the tuning block and keeps them.

    Args:
        rules: What all worlds share.
        units: Where finished units are and go, and the levels of worlds.
        executor: What plays them.
        time_limit: Seconds that a world may take.
        stopped: Asked after every unit: whether to stop.
    """

    def __init__(
        self, rules: Rules, units: UnitLog, executor: Executor, time_limit: float, stopped: Callable[[], bool]
    ) -> None:
        self._rules, self._units, self._executor = rules, units, executor
        self._time_limit, self._stopped = time_limit, stopped
        self._block = SeedBlock("tuning")
        self._found: dict[tuple[Level, int], list[int]] = {}
        self._scanned: dict[tuple[Level, int], int] = {}
        self.played = 0

    def worlds(self, level: Level, first: int, count: int, start: int = 0) -> list[int]:
        """Indice of worlds whose focal seat is at a level.

        Args:
            level: The level.
            first: How many such worlds to pass over.
            count: How many to return.
            start: The index from which they are counted.
        """
        found = self._found.setdefault((level, start), [])
        while len(found) < first + count:
            scanned = self._scanned.get((level, start), start)
            chunk = range(scanned, scanned + _CHUNK)
            levels = self._run(
                [(f"level/{index}", level_of, (self._rules, self._block.seed(index))) for index in chunk]
            )
            found += [index for index, one in zip(chunk, levels, strict=True) if one["value"] == level]
            self._scanned[level, start] = scanned + _CHUNK
        return found[first : first + count]

    def scores(self, games: Sequence[tuple[AgentSpec, int]]) -> list[float]:
        """Scores of agents in worlds given by their indices, in the same order.

        Raises:
            Interrupted: If somebody asked to stop.
            WorldFailedError: If a world could not be played.
        """
        seeds = [self._block.seed(index) for _, index in games]
        calls = [
            (unit_key(self._rules, seed, agent), play_unit, (self._rules, seed, agent))
            for (agent, _), seed in zip(games, seeds, strict=True)
        ]
        return [float(unit["score"]) for unit in self._run(calls)]

    def _run(self, calls: Sequence[tuple[str, Callable[..., Any], tuple[Any, ...]]]) -> list[dict[str, Any]]:
        """Results of calls by their keys; those that are not known are run and kept."""
        missing = {key: (function, arguments) for key, function, arguments in calls if self._units.get(key) is None}
        for key, value in self._results(missing):
            plain = {"value": value} if not isinstance(value, dict) else value
            self._units.put(key, {name: part for name, part in plain.items() if name != "cpu"})
            self.played += 1
            if self._stopped():
                raise Interrupted
        found = [self._units.get(key) for key, _, _ in calls]
        return [unit for unit in found if unit is not None]

    def _results(self, missing: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]) -> Iterator[tuple[str, Any]]:
        keys = list(missing)
        tasks = [Task(missing[key][0], missing[key][1], label=key[:32]) for key in keys]
        with closing(self._executor.run(tasks, RunOptions(time_limit=self._time_limit, ordered=False))) as run:
            for result in run:
                if result.value is None:
                    raise WorldFailedError(
                        f"a world could not be played: {result.failure}",
                        "a candidate is judged by all worlds of its stage",
                        "run the same command again, with a longer --time-limit if it was too short",
                    )
                yield keys[result.index], result.value
