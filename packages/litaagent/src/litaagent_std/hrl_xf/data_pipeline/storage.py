"""Saving and loading samples: `save_samples` and `load_samples`, without pickle."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from apexrl.runs.atomic import atomic_path, ensure_folder
from apexrl.runs.reading import read_npz, reading, write_sealed
from litaagent_std.hrl_xf.data_pipeline.dataset import MANIFEST_NAME, OfflineData, Part
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import Arrays
from litaagent_std.hrl_xf.data_pipeline.samples import MacroDataset, MacroSample, MicroDataset, MicroSample
from litaagent_std.hrl_xf.data_pipeline.shards import write_arrays
from litaagent_std.hrl_xf.data_pipeline.split import SPLIT_NAME
from litaagent_std.policy.features import WiderHorizonWarning

__all__ = ["load_samples", "save_samples"]

_ROWS: Final = 4096
_FILE: Final = "samples.npz"
_FORMAT: Final = "litaagent.samples"
_MACRO: Final = ("day", "macro_state_macro", "macro_goal", "macro_scale")
_MICRO: Final = ("micro_action", "micro_baseline", "micro_context", "micro_scale")


def save_samples(
    macro: Sequence[MacroSample], micro: Sequence[MicroSample], path: str | Path, horizon: int | None = None
) -> Path:
    """Write samples to a folder.

    Samples of a dataset are copied row by row with all their arrays, so that `load_samples` gives a dataset again;
    samples made from tables go into one file.

    Args:
        macro: Days.
        micro: Actions, of the same dataset.
        path: The folder; samples that it held are replaced.
        horizon: Delivery days after today that the arrays hold; default: those of the samples. Days beyond the
            samples' are masked, with a `WiderHorizonWarning`. For samples of a dataset only.

    Raises:
        DatasetError: If the halves are of different datasets, or the horizon is smaller than theirs.
    """
    folder = ensure_folder(path)
    if isinstance(macro, MacroDataset) and isinstance(micro, MicroDataset):
        if macro.data.digest != micro.data.digest:
            raise DatasetError(
                f"days of {macro.data.folder} with actions of {micro.data.folder}",
                "an action refers to the row of its day",
                "give both halves of one dataset",
            )
        _copy(macro.data, folder, macro.data.horizon if horizon is None else horizon)
    else:
        _pack(macro, micro, folder)
    return folder


def load_samples(path: str | Path) -> tuple[Sequence[MacroSample], Sequence[MicroSample]]:
    """Read what `save_samples` wrote.

    Raises:
        DatasetError: If there are no samples, or they are damaged.
    """
    folder = Path(path)
    if (folder / MANIFEST_NAME).exists():
        data = OfflineData.open(folder)
        return MacroDataset(data), MicroDataset(data)
    return _unpack(folder / _FILE)


def _copy(data: OfflineData, folder: Path, horizon: int) -> None:
    if horizon < data.horizon:
        raise DatasetError(
            f"horizon={horizon} is smaller than the samples' {data.horizon}",
            "standing contracts would be lost",
            f"give at least {data.horizon}, or leave it out",
        )
    if folder.resolve() == data.folder.resolve():
        raise DatasetError(
            f"{str(folder)!r} already holds these samples", "a copy needs another folder", "give another folder"
        )
    if horizon > data.league_horizon:
        warnings.warn(
            f"horizon={horizon} exceeds the league's {data.league_horizon}; leads {data.league_horizon + 1} to "
            f"{horizon} are masked",
            WiderHorizonWarning,
            stacklevel=3,
        )
    (folder / MANIFEST_NAME).unlink(missing_ok=True)
    extra = horizon - data.horizon
    written = {
        "macro": write_arrays(folder / "macro", len(data.macro), _pieces(data.macro, extra)),
        "micro": write_arrays(folder / "micro", len(data.micro), _pieces(data.micro, 0)),
    }
    data.split.write(folder / SPLIT_NAME)
    arrays = {half: part.shapes for half, part in written.items()}
    digests = {half: part.digests for half, part in written.items()}
    content = {**data.manifest, "horizon": horizon, "arrays": arrays, "array_digests": digests}
    write_sealed(folder / MANIFEST_NAME, content)


def _pieces(part: Part, extra: int) -> Iterator[Arrays]:
    for arrays in part.chunks(_ROWS):
        if extra:  # [n, H+1, …] gets `extra` masked delivery days at the end
            arrays["x_temporal"] = np.pad(arrays["x_temporal"], ((0, 0), (0, extra), (0, 0)))
            arrays["mask"] = np.pad(arrays["mask"], ((0, 0), (0, extra)))
        yield arrays


def _pack(macro: Sequence[MacroSample], micro: Sequence[MicroSample], folder: Path) -> None:
    arrays: dict[str, Any] = {"format": np.array(json.dumps({"format": _FORMAT, "version": 1}))}
    if macro:
        arrays["day"] = np.array([sample.day for sample in macro])
        for name in ("state_macro", "goal", "scale"):
            arrays[f"macro_{name}"] = np.stack([getattr(sample, name) for sample in macro])
    if micro:
        lengths = [len(sample.history) for sample in micro]
        arrays["negotiation_id"] = np.array([sample.negotiation_id for sample in micro])
        arrays["history_ends"] = np.cumsum(lengths)
        arrays["history"] = np.concatenate([sample.history for sample in micro])
        for name in ("action", "baseline", "context", "scale"):
            arrays[f"micro_{name}"] = np.stack([getattr(sample, name) for sample in micro])
    with atomic_path(folder / _FILE) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _unpack(path: Path) -> tuple[list[MacroSample], list[MicroSample]]:
    try:
        with reading(path, DatasetError, "the file is not changed after it was saved", "save it again"):
            return _samples_of(read_npz(path))
    except FileNotFoundError as error:
        raise DatasetError(
            f"there are no samples in {str(path.parent)!r}",
            f"save_samples leaves a {MANIFEST_NAME} or a {_FILE}",
            "save them, or name another folder",
        ) from error


def _samples_of(arrays: Arrays) -> tuple[list[MacroSample], list[MicroSample]]:
    if json.loads(str(arrays["format"])) != {"format": _FORMAT, "version": 1}:
        raise ValueError(f"it is not marked {_FORMAT!r}, version 1")
    macro = [
        MacroSample(int(day), *values) for day, *values in zip(*(arrays.get(name, ()) for name in _MACRO), strict=True)
    ]
    histories = np.split(arrays["history"], arrays["history_ends"][:-1]) if "history" in arrays else []
    micro = [
        MicroSample(str(name), history, *values)
        for name, history, *values in zip(
            arrays.get("negotiation_id", ()), histories, *(arrays.get(name, ()) for name in _MICRO), strict=True
        )
    ]
    return macro, micro
