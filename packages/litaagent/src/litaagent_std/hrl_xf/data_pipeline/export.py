"""Export of a dataset as Parquet with a card, readable without this project.

::

    FOLDER/
      README.md        the card: content, provenance, columns, splits
      macro.parquet    a row per day of a factory
      micro.parquet    a row per action; ``day_row`` is the row of its day in macro.parquet
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from apexrl.runs.atomic import atomic_path, ensure_folder, write_text
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData, Part
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS
from litaagent_std.policy.arrays import Array, Ints8
from litaagent_std.policy.buckets import bucket_edges
from litaagent_std.policy.features import DAY_FEATURES, THREAD_FEATURES

__all__ = ["MEANING", "export_parquet"]

_ROWS: Final = 16_384

MEANING: Final[dict[str, str]] = {
    "split": "train, val or test; configurations are never divided",
    "x_static": "the factory and its market at day start",
    "x_temporal": "delivery days from today on, [lead, feature]",
    "x_role": "1 for each side that is negotiable: buying, selling",
    "mask": "which delivery days exist",
    "goal_q": "units by side and delivery bucket: the label of L2",
    "goal_p": "mean unit price by side and delivery bucket, 0 where there are no units",
    "goal_p_mask": "where the price counts",
    "lines": "production lines: the scale of quantities",
    "price": "trading prices of input and output: the scales of prices",
    "base": "goals of our heuristic agent with the same history, by delivery bucket: the base of residuals",
    "return_to_go": "final score minus the balance at day start, both relative to the initial balance",
    "return_norm": "the same, normalised over all worlds of the configuration at this seat",
    "config": "number of the configuration",
    "world": "number of the world in the dataset",
    "factory": "the seat",
    "day": "the day",
    "history": "offers strictly before the action, [offer, feature]",
    "history_mask": "which rows of the history are offers",
    "ranges": "ends of the legal ranges",
    "x_thread": "time, role and the offer on the table",
    "x_partner": "the partner, from its published reports",
    "day_row": "row of the day in macro",
    "op": "0 accept, 1 reject (with a counter-offer, the first proposal too), 2 end",
    "offer": "quantity, lead and unit price of the counter-offer, -1 if none",
    "received": "the offer on the table, -1 if none",
    "baseline_op": "what L1's baseline would do",
    "baseline": "what it would offer",
    "base_op": "what our heuristic agent would do with the same history",
    "base_offer": "what it would offer; the base of residuals",
    "issue_low": "least legal quantity, lead and unit price",
    "issue_high": "largest legal quantity, lead and unit price",
    "taken": "whether the partner accepted the counter-offer; -1 if there was none, or no answer",
    "side": "0 buying, 1 selling",
    "thread": "number of the negotiation in its world",
    "round": "rounds completed before the action",
    "reason_reservation": "the agent's limit price for the offer on the table; NaN if not recorded",
    "reason_acceptance": "the agent's probability that the partner takes the counter-offer; NaN if not recorded",
    "reason_alpha": "L4's weight of the thread; NaN if not recorded",
    "reason_urgency": "urgency of the side's goals; NaN if not recorded",
    "reason_log_probability": "logarithm of the sampled action's probability; NaN if not recorded",
}
"""Meaning of each column."""


def export_parquet(data: OfflineData, folder: str | Path) -> Path:
    """Write a dataset as Parquet with a card; memory does not grow with it.

    Args:
        data: The dataset.
        folder: Target; files of an earlier export are replaced.

    Returns:
        The folder.
    """
    target = ensure_folder(folder)
    for name, part in (("macro", data.macro), ("micro", data.micro)):
        _write(target / f"{name}.parquet", part, _splits(data))
    write_text(target / "README.md", card(data))
    return target


def _splits(data: OfflineData) -> Ints8:
    """Return the index into `SPLITS` of each configuration, [configuration]."""
    splits = np.zeros(1 + max((n for split in SPLITS for n in data.split.configs[split]), default=0), np.int8)
    for index, split in enumerate(SPLITS):
        splits[list(data.split.configs[split])] = index
    return splits


def _write(path: Path, part: Part, splits: Ints8) -> None:
    with atomic_path(path) as temporary:
        writer: pq.ParquetWriter | None = None
        for table in _tables(part, splits):
            if writer is None:
                writer = pq.ParquetWriter(temporary, table.schema, compression="zstd")
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _tables(part: Part, splits: Ints8) -> Iterator[pa.Table]:
    for arrays in part.chunks(_ROWS):
        names = pa.DictionaryArray.from_arrays(pa.array(splits[arrays["config"]]), pa.array(SPLITS))
        columns = {"split": names.cast(pa.string())}
        yield pa.table(columns | {name: _column(values) for name, values in arrays.items()})


def _column(values: Array) -> pa.Array:
    """Return rows as an Arrow column: numbers, or lists of fixed length, nested as the array is."""
    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def card(data: OfflineData) -> str:
    """Return the dataset's card as Markdown."""
    m = data.manifest
    lines = [
        f"# Negotiations of {m['options']['agent_name'] or 'all agents'} in the SCML Standard league",
        "",
        f"Behaviour of recorded agents for offline learning: {m['counts']['mornings']} days of factories with the "
        f"goals that the day showed, and {m['counts']['actions']} actions with all that preceded each, from "
        f"{m['counts']['worlds']} worlds of {m['counts']['configs']} configurations.",
        "",
        "| made with | value |",
        "|---|---|",
        *(f"| {key} | `{value}` |" for key, value in _facts(data).items()),
        "",
        "Inputs hold nothing of the future and no deal of the same day. Worlds of one configuration are in one split.",
        "",
        "| split | configurations | worlds |",
        "|---|---|---|",
        *(f"| {split} | {len(data.split.configs[split])} | {data.split.n_worlds(split)} |" for split in SPLITS),
    ]
    for name, part in (("macro", data.macro), ("micro", data.micro)):
        lines += ["", f"## {name}.parquet", "", "| column | shape | meaning |", "|---|---|---|"]
        lines += [f"| `{key}` | {list(part[key].shape[1:]) or 'number'} | {MEANING[key]} |" for key in part]
    lines += ["", "## Features", ""]
    lines += [f"- `{key}`: {', '.join(names)}" for key, names in {**DAY_FEATURES, **THREAD_FEATURES}.items()]
    return "\n".join(lines) + "\n"


def _facts(data: OfflineData) -> dict[str, Any]:
    m = data.manifest
    edges = bucket_edges(data.league_horizon)
    buckets = ", ".join(f"{low} to {high - 1}" for low, high in pairwise(edges))
    return {
        "digest": m["digest"],
        "features": m["features_digest"],
        "L1": m["l1_digest"],
        "labels of L2": m["options"]["labels"],
        "leads of the delivery buckets": buckets,
        "horizon": m["horizon"],
        "rounds per negotiation": m["n_rounds"],
        **{f"records {path}": digest for path, digest in m["sources"].items()},
    }
