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


class Interrupted(Exception):  # noqa: N818 - no error: a stop was requested
    """A stop was requested; everything finished is kept."""


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
        stopped: Called after every unit: whether to stop.
        code: Version of the code of the agent that is tuned. Candidates differ in parameters alone, so it holds for all
            of them.
    """

    def __init__(
        self,
        rules: Rules,
        units: UnitLog,
        executor: Executor,
        time_limit: float,
        stopped: Callable[[], bool],
        code: str,
    ) -> None:
        self._rules, self._units, self._executor = rules, units, executor
        self._time_limit, self._stopped, self._code = time_limit, stopped, code
        self._block = SeedBlock("tuning")
        self._indices: dict[tuple[Level, int], list[int]] = {}
        self._scanned: dict[tuple[Level, int], int] = {}
        self.played = 0

    def worlds(self, level: Level, first: int, count: int, start: int = 0) -> list[int]:
        """Return the indices of worlds whose focal seat is at a level.

        Args:
            level: The level.
            first: How many such worlds to pass over.
            count: How many to return.
            start: The index from which they are counted.
        """
        indices = self._indices.setdefault((level, start), [])
        while len(indices) < first + count:
            scanned = self._scanned.get((level, start), start)
            chunk = range(scanned, scanned + _CHUNK)
            levels = self._run(
                [(f"level/{index}", level_of, (self._rules, self._block.seed(index))) for index in chunk]
            )
            indices += [index for index, unit in zip(chunk, levels, strict=True) if unit["value"] == level]
            self._scanned[level, start] = scanned + _CHUNK
        return indices[first : first + count]

    def scores(self, games: Sequence[tuple[AgentSpec, int]]) -> list[float]:
        """Return the scores of agents in worlds given by their indices, in the same order.

        Raises:
            Interrupted: If a stop was requested.
            WorldFailedError: If a world could not be played.
        """
        seeds = [self._block.seed(index) for _, index in games]
        calls = [
            (unit_key(self._rules, seed, agent, self._code), play_unit, (self._rules, seed, agent))
            for (agent, _), seed in zip(games, seeds, strict=True)
        ]
        return [float(unit["score"]) for unit in self._run(calls)]

    def _run(self, calls: Sequence[tuple[str, Callable[..., Any], tuple[Any, ...]]]) -> list[dict[str, Any]]:
        """Return the results of calls by their keys; those that are not known are run and kept."""
        missing = {key: (function, arguments) for key, function, arguments in calls if self._units.get(key) is None}
        for key, value in self._results(missing):
            plain = {"value": value} if not isinstance(value, dict) else value
            self._units.put(key, {name: part for name, part in plain.items() if name != "cpu"})
            self.played += 1
            if self._stopped():
                raise Interrupted
        units = [self._units.get(key) for key, _, _ in calls]
        return [unit for unit in units if unit is not None]

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
