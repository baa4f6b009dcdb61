"""Selection of the factories and worlds whose samples a dataset holds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError, NoSuchAgentError
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.records.reader import Records, WorldKey

__all__ = ["SelectedWorld", "select_worlds"]


@dataclass(frozen=True, slots=True)
class SelectedWorld:
    """A world with the seats that give samples.

    Attributes:
        key: The world among the records.
        config: Number of its configuration in the dataset.
        config_seed: Seed that the configuration was drawn with.
        horizon: The league's horizon in it.
        n_rounds: Rounds allowed per negotiation.
        seats: The seats.
    """

    key: WorldKey
    config: int
    config_seed: int
    horizon: int
    n_rounds: int
    seats: tuple[int, ...]


def select_worlds(records: Records, options: DatasetOptions) -> list[SelectedWorld]:
    """Select the factories that match, in the order of folders, worlds and seats.

    Configurations are the same when they were drawn with the same seed, also across tournaments.

    Raises:
        NoSuchAgentError: If no factory matches.
        DatasetError: If the selected worlds were played with different horizons or numbers of rounds.
    """
    factories = records.table("factories", columns=["factory", "agent_type", "competitor", "score"]).to_pylist()
    best = _best(factories, options.top)
    seats: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in factories:
        if _matches(row, options, best):
            seats[row["source"], row["world"]].append(row["factory"])
    if not seats:
        raise _no_match(factories, options)
    columns = ["config_seed", "horizon", "n_rounds"]
    selected: list[SelectedWorld] = []
    numbers: dict[int, int] = {}
    for row in records.table("worlds", columns=columns).to_pylist():
        key = WorldKey(row["source"], row["world"])
        if key in seats:
            config = numbers.setdefault(row["config_seed"], len(numbers))
            facts = (row["config_seed"], row["horizon"], row["n_rounds"])
            selected.append(SelectedWorld(key, config, *facts, tuple(sorted(seats[key]))))
    _check_same(selected)
    return selected


def class_name(agent_type: str) -> str:
    """Return the class name of an agent's type."""
    return agent_type.rpartition(".")[2].rpartition(":")[2]


def _matches(row: dict[str, Any], options: DatasetOptions, best: set[tuple[int, str]] | None) -> bool:
    name = class_name(row["agent_type"])
    return (
        name.startswith(options.agent_name)
        and (best is None or (row["source"], name) in best)
        and (options.min_score is None or row["score"] >= options.min_score)
    )


def _best(factories: list[dict[str, Any]], top: int | None) -> set[tuple[int, str]] | None:
    """Return the best competitors of each tournament, by folder and class name."""
    if top is None:
        return None
    scores: dict[tuple[int, str], list[float]] = defaultdict(list)
    for row in factories:
        if row["competitor"] is not None:
            scores[row["source"], class_name(row["agent_type"])].append(row["score"])
    best: set[tuple[int, str]] = set()
    for source in sorted({source for source, _ in scores}):
        mean = {name: sum(own) / len(own) for (origin, name), own in scores.items() if origin == source}
        ranked = sorted(mean, key=lambda name: (-mean[name], name))
        best |= {(source, name) for name in ranked[:top]}
    return best


def _no_match(factories: list[dict[str, Any]], options: DatasetOptions) -> NoSuchAgentError:
    known = sorted({class_name(row["agent_type"]) for row in factories})
    message = f"no recorded factory matches agent_name={options.agent_name!r}"
    if options.top is not None:
        message += f" among the best {options.top} of its tournament"
    if options.min_score is not None:
        message += f" with a score of {options.min_score:g} or more"
    return NoSuchAgentError(
        message,
        f"agents are selected by a prefix of their class name; recorded are {', '.join(known) or 'no worlds at all'}",
        "name one of these, loosen the filters, or collect a tournament with that agent",
    )


def _check_same(worlds: list[SelectedWorld]) -> None:
    for name in ("horizon", "n_rounds"):
        values = sorted({getattr(world, name) for world in worlds})
        if len(values) > 1:
            raise DatasetError(
                f"the worlds differ in {name}: {values}",
                "arrays of one dataset have one shape, and buckets come from the league's horizon",
                "build one dataset per kind of world, each from its own folder",
            )
