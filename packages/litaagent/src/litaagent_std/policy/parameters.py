"""The tunable parameters of the heuristic layers, in one frozen dataclass.

A price *position* lies inside the day's legal price band as the seller sees it: 0 is the lowest legal price, 1 the
highest. Times are relative: 0 is the first round of a negotiation, 1 the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final, Literal, Self

import numpy as np

from .arrays import Array

__all__ = ["LEVELS", "Level", "ParameterColumns", "Parameters", "as_markdown", "level_name", "tunable"]

Level = Literal["first", "middle", "last"]
LEVELS: Final[tuple[Level, ...]] = ("first", "middle", "last")
"""Levels of the chain by name, as `level_name` gives them."""


def _tuned(default: float, low: float, high: float, meaning: str) -> float:
    value: float = field(default=default, metadata={"range": (low, high), "meaning": meaning})
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """The tunable parameters; `overrides` replaces some of them at one level of the chain.

    Each tunable field carries its range and meaning as metadata (`tunable`).
    """

    sell_start: float = _tuned(1.0, 0.5, 1.0, "position asked in the first round")
    sell_end_slack: float = _tuned(0.0, 0.0, 1.0, "position asked at the end while capacity goes unsold")
    sell_end_full: float = _tuned(0.15, 0.0, 1.0, "position asked at the end while every day sells out")
    sell_curve: float = _tuned(1.0, 0.2, 6.0, "exponent of the concession over the rounds; above 1 concedes late")
    fill_weight: float = _tuned(0.5, 0.0, 2.0, "how far a day that is fuller than usual counts as sold out")
    fill_rate: float = _tuned(0.2, 0.02, 0.5, "step of the moving averages of how days fill")
    drift_weight: float = _tuned(0.0, -2.0, 2.0, "how far a rising price (per cent a day) raises the final position")
    learn_rate: float = _tuned(0.4, 0.0, 1.0, "how much a refusal counts as evidence of what a partner is")
    model_weight: float = _tuned(1.0, 0.0, 1.0, "weight of the acceptance model in the last round (0: baseline)")
    model_curve: float = _tuned(2.0, 0.5, 6.0, "exponent by which that weight grows over the rounds")
    hold: float = _tuned(0.3, 0.0, 1.0, "share of the top price a unit of capacity is worth while days sell out")
    urgency_low: float = _tuned(0.6, 0.0, 1.0, "fill of the next days below which sales concede at once")
    urgency_high: float = _tuned(1.0, 0.0, 1.5, "fill of the next days above which none is urgent (0: never)")
    impatience: float = _tuned(3.0, 0.0, 6.0, "how early partners that share out their need are settled with")
    buy_start: float = _tuned(0.0, 0.0, 1.0, "position bid in the first round of a purchase")
    buy_end: float = _tuned(1.0, 0.0, 1.0, "position bid at the end of a purchase")
    buy_curve: float = _tuned(0.5, 0.1, 4.0, "exponent of the bid's concession; below 1 concedes early")
    buy_urgency: float = _tuned(
        0.7, 0.0, 1.0, "how early a purchase concedes to the highest price, from 0 (last round) to 1 (at once)"
    )
    stock_target: float = _tuned(1.0, 0.3, 1.5, "stock to hold, in days of full production")
    stock_days: float = _tuned(4.0, 0.0, 30.0, "days that a unit of stock must still serve to be worth buying")
    cover_days: float = _tuned(3.0, 1.0, 8.0, "days of sales to cover with input when production consumes stock")
    bankruptcy_days: float = _tuned(3.0, 0.0, 20.0, "days before a partner's forecast bankruptcy to stop selling")
    input_trust: float = _tuned(0.7, 0.0, 1.0, "share of input still to come that later days may count on")
    risk_budget: float = _tuned(0.05, 0.0, 1.0, "expected penalty allowed per delivery day, in units of full output")
    assume_persistent: bool = True
    overrides: Mapping[Level, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ranges = tunable()
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ValueError(f"{name}={value} is outside [{low}, {high}]; choose a value inside the range")
        for level, changes in self.overrides.items():
            if level not in LEVELS:
                raise ValueError(f"unknown level {level!r} in overrides; choose from {LEVELS}")
            unknown = set(changes) - set(ranges)
            if unknown:
                raise ValueError(f"overrides of level {level!r} name unknown parameters {sorted(unknown)}")
            self.at(level)  # checks the ranges

    def at(self, level: Level) -> Parameters:
        """Return the parameters of one level, its overrides applied."""
        changes: dict[str, Any] = dict(self.overrides.get(level, {}))
        return replace(self, overrides={}, **changes)

    def without_risk(self) -> Parameters:
        """Return the parameters with a risk budget of 0 at every level."""
        kept = {
            level: {name: value for name, value in changes.items() if name != "risk_budget"}
            for level, changes in self.overrides.items()
        }
        return replace(self, risk_budget=0.0, overrides=kept)

    def to_json(self) -> str:
        """Return the parameters as JSON."""
        return json.dumps(asdict(self), indent=2, sort_keys=True)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Build parameters from plain data.

        Raises:
            ValueError: If a name is unknown.
        """
        known = {entry.name for entry in fields(cls)}
        unknown = set(values) - known
        if unknown:
            raise ValueError(f"unknown parameters {sorted(unknown)}; known are {sorted(known)}")
        return cls(**values)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        return cls.from_mapping(json.loads(text))


class ParameterColumns:
    """Parameters of B factories as columns ``[B]`` under the names of `Parameters`, each factory's level applied."""

    def __init__(self, columns: Mapping[str, Array], rows: Array | None = None) -> None:
        self._columns, self._rows = columns, rows
        if rows is None:
            vars(self).update(columns)

    @classmethod
    def of(cls, rows: Sequence[Parameters]) -> ParameterColumns:
        """Stack parameters, one of each factory."""
        names = (*tunable(), "assume_persistent")
        return cls({name: np.array([getattr(row, name) for row in rows]) for name in names})

    def take(self, rows: Array) -> ParameterColumns:
        """Return the parameters of some factories; columns are made when they are read."""
        return ParameterColumns(self._columns, rows if self._rows is None else self._rows[rows])

    def __getattr__(self, name: str) -> Array:
        """Return a column by the parameter's name, and keep it."""
        if name.startswith("_"):  # asked for while a copy is made, before there are columns
            raise AttributeError(name)
        try:
            column = self._columns[name]
        except KeyError:
            raise AttributeError(f"there is no parameter {name!r}; known are {sorted(self._columns)}") from None
        vars(self)[name] = column = column if self._rows is None else column[self._rows]
        return column


def tunable() -> dict[str, tuple[float, float]]:
    """Return the range of every tunable parameter by its name."""
    return {entry.name: entry.metadata["range"] for entry in fields(Parameters) if "range" in entry.metadata}


def level_name(level: int, n_levels: int) -> Level:
    """Return the name of a level; in a chain of one level the factory counts as the last."""
    if level == n_levels - 1:
        return "last"
    return "first" if level == 0 else "middle"


def as_markdown() -> str:
    """Return the documentation's table: every tunable parameter with its range and meaning."""
    rows = [
        (entry.name, *entry.metadata["range"], entry.metadata["meaning"])
        for entry in fields(Parameters)
        if "range" in entry.metadata
    ]
    lines = ["| parameter | from | to | meaning |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| `{name}` | {low:g} | {high:g} | {meaning} |" for name, low, high, meaning in rows])
