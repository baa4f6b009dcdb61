"""The space that is searched: some parameters of one level, each scaled to [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from apexrl.runs.errors import ConfigurationError
from litaagent_std.policy.parameters import Level, Parameters, tunable

__all__ = ["UNUSED", "Space", "with_values"]

_DIGITS: Final = 4

UNUSED: Final[dict[Level, frozenset[str]]] = {
    "first": frozenset({"buy_start", "buy_end", "buy_curve", "buy_urgency"}),
    "middle": frozenset(),
    "last": frozenset(
        {"sell_start", "sell_end_slack", "sell_end_full", "sell_curve", "fill_weight", "fill_rate", "drift_weight"}
        | {"hold", "impatience", "bankruptcy_days"}
    ),
}
"""Parameters that say nothing at a level: the first buys nothing in negotiations, the last sells nothing in them."""


@dataclass(frozen=True, slots=True)
class Space:
    """The parameters of a level that are searched.

    Attributes:
        level: The level.
        start: All parameters at the start of the search.
        names: Those that are searched.
    """

    level: Level
    start: Parameters
    names: tuple[str, ...]

    @classmethod
    def of(cls, level: Level, start: Parameters, names: Sequence[str] = ()) -> Space:
        """Make the space of some parameters, of all tunable ones without names; those without use there are left out.

        Raises:
            ConfigurationError: If a name is unknown, there is one twice, or none is of use at the level.
        """
        known = tunable()
        wrong = sorted(set(names) - set(known))
        if wrong or len(set(names)) < len(names):
            raise ConfigurationError(
                f"--names {' '.join(names)} is refused" + (f": {', '.join(wrong)} cannot be tuned" if wrong else ""),
                f"the parameters that can be tuned are {', '.join(known)}",
                "name some of them, each once",
            )
        used = tuple(name for name in names or known if name not in UNUSED[level])
        if not used:
            raise ConfigurationError(
                f"--names {' '.join(names)} say nothing at the level {level!r}",
                "the first level buys nothing in negotiations, the last sells nothing in them",
                "name others as well, or leave the level out of --levels",
            )
        return cls(level, start, used)

    @property
    def origin(self) -> list[float]:
        """The start as a point of the space."""
        here = self.start.at(self.level)
        ranges = tunable()
        return [(getattr(here, name) - ranges[name][0]) / (ranges[name][1] - ranges[name][0]) for name in self.names]

    def values(self, point: Sequence[float]) -> dict[str, float]:
        """Return the parameters at a point, rounded to a few digits: what is played is what files hold.

        Args:
            point: A number from 0 to 1 for each name.
        """
        ranges = tunable()
        values = {}
        for name, share in zip(self.names, point, strict=True):
            low, high = ranges[name]
            values[name] = min(high, max(low, round(low + float(share) * (high - low), _DIGITS)))
        return values

    def parameters(self, point: Sequence[float]) -> Parameters:
        """All parameters, with those of a point at the level."""
        return with_values(self.start, self.level, self.values(point))


def with_values(parameters: Parameters, level: Level, values: dict[str, float]) -> Parameters:
    """Return parameters with some values replaced at one level."""
    plain = {name: getattr(parameters, name) for name in Parameters.__dataclass_fields__}
    overrides = {at: dict(changes) for at, changes in parameters.overrides.items()}
    overrides[level] = {**overrides.get(level, {}), **values}
    return Parameters.from_mapping({**plain, "overrides": overrides})
