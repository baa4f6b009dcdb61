"""What a factory knew of a negotiation thread before each of its turns, rebuilt from a record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from litaagent_std.policy.observation import Offer, ThreadObservation, Turn
from litaagent_std.records.interface import WorldTables

__all__ = ["decisions"]


def decisions(world: WorldTables, factory: int) -> Iterator[tuple[ThreadObservation, dict[str, Any]]]:
    """Yield every turn of a factory with what it knew of that thread before it, in the order of play.

    Args:
        world: The world.
        factory: The seat.
    """
    threads = {
        (row["day"], row["negotiation"]): row
        for row in world.tables["negotiations"].to_pylist()
        if factory in (row["buyer"], row["seller"])
    }
    by_day: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in world.tables["turns"].to_pylist():
        if (row["day"], row["negotiation"]) in threads:
            by_day[row["day"]].append(row)
    for day, rows in sorted(by_day.items()):
        yield from _day(world, factory, day, sorted(rows, key=lambda row: row["turn"]), threads)


def _day(
    world: WorldTables,
    factory: int,
    day: int,
    rows: list[dict[str, Any]],
    threads: dict[tuple[int, int], dict[str, Any]],
) -> Iterator[tuple[ThreadObservation, dict[str, Any]]]:
    offers: dict[int, list[Turn]] = defaultdict(list)
    standing = world.standing(factory, day)
    new = world.signed.get((factory, day), [])
    for row in rows:
        index = row["negotiation"]
        if row["factory"] == factory:
            known = standing + [c for c in new if c["turn"] < row["decided"]]
            yield _observe(world, factory, threads[day, index], row, offers[index], known), row
        if row["quantity"] is not None:
            offer = Offer(row["quantity"], row["time"], row["unit_price"])
            offers[index].append(Turn(row["round"], row["factory"] == factory, offer))


def _observe(
    world: WorldTables,
    factory: int,
    thread: dict[str, Any],
    row: dict[str, Any],
    offers: list[Turn],
    contracts: list[dict[str, Any]],
) -> ThreadObservation:
    buying = thread["buyer"] == factory
    answers = row["response"] is not None
    return ThreadObservation(
        day=row["day"],
        partner=world.names[thread["seller"] if buying else thread["buyer"]],
        buying=buying,
        round=row["round"],
        n_rounds=world.facts["n_rounds"],
        relative_time=row["relative_time"],
        opens=thread["caller"] == factory,
        offer=offers[-1].offer if answers else None,
        turns=tuple(offers[:-1] if answers else offers),
        calendar=world.calendar(factory, row["day"], contracts),
    )
