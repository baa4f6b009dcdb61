"""The training record, written by the trainer: data, options, phases and results of a run.

It is ``training.json`` in the run's folder; metrics by epoch are in ``metrics/<phase>/metrics.jsonl``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from apexrl.runs.errors import RunDirError
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.runs.reading import read_sealed, reading, write_sealed
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS

if TYPE_CHECKING:
    from litaagent_std.hrl_xf.training.data import TrainingData
    from litaagent_std.hrl_xf.training.learner import PhaseResult, PhaseSpec

__all__ = ["RECORD_NAME", "RUNS_FOLDER", "TrainingRecord", "curves", "stages_of"]

RECORD_NAME = "training.json"
RUNS_FOLDER = Path("training_runs")
"""Default folder of runs."""
_FORMAT = "litaagent.training"


def curves(folder: Path, phase: str) -> list[dict[str, Any]]:
    """Return the metrics of each epoch of a phase."""
    path = folder / "metrics" / phase / "metrics.jsonl"
    return read_jsonl(path) if path.exists() else []


def stages_of(epochs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the stages of a phase: consecutive epochs with the same learning rate, and the losses after the last."""
    stages: list[dict[str, Any]] = []
    for epoch in epochs:
        losses = {name: value for name, value in epoch.items() if name not in ("step", "lr")}
        if stages and stages[-1]["lr"] == epoch["lr"]:
            stages[-1] |= {"to": epoch["step"], "losses": losses}
        else:
            stages.append({"from": epoch["step"], "to": epoch["step"], "lr": epoch["lr"], "losses": losses})
    return stages


def _configurations(data: TrainingData) -> dict[str, int]:
    """Return how many configurations each split has."""
    from litaagent_std.hrl_xf.training.data import rows_of  # imports torch, which readers of a record do not need

    config = np.asarray(data.macro["config"])
    return {split: len(np.unique(config[rows_of(data.macro, split)])) for split in SPLITS}


class TrainingRecord:
    """The record of one run.

    Args:
        folder: The run's folder.
        content: Content of ``training.json``.
    """

    def __init__(self, folder: Path, content: dict[str, Any]) -> None:
        self.folder, self.content = folder, content

    @classmethod
    def open(cls, folder: Path) -> TrainingRecord:
        """Read the record of a folder, or begin one."""
        if (folder / RECORD_NAME).exists():
            return cls.read(folder)
        return cls(folder, _empty())

    @classmethod
    def read(cls, folder: Path) -> TrainingRecord:
        """Read the record of a run.

        Raises:
            RunDirError: If there is none, or it is damaged.
        """
        path = folder / RECORD_NAME
        try:
            with reading(path, RunDirError, "it is the record that training wrote", "train again, or remove it"):
                content = read_sealed(path)
        except FileNotFoundError as error:
            is_run = (folder / "run.json").exists()
            raise RunDirError(
                f"{str(folder)!r} holds no record of phases: it has no {RECORD_NAME}",
                "`lita train` and HRLXFTrainer write one",
                f"of another run, such as one of lita train-online, write a report: lita report {folder}"
                if is_run
                else "correct the path; lita runs list shows what there is",
            ) from error
        if content.get("format") != _FORMAT or not content.keys() >= _empty().keys() - {"logs"}:
            raise RunDirError(
                f"{str(path)!r} is not a training record",
                f"a record is marked {_FORMAT!r}",
                "name the folder of a training run",
            )
        return cls(folder, content)

    def data(self, data: TrainingData, config: Any) -> None:  # noqa: ANN401 - plain values
        """Record the dataset and the options."""
        self.content["dataset"] = {
            "digest": data.digest,
            "features_digest": data.features_digest,
            "l1_digest": data.l1_digest,
            "horizon": data.league_horizon,
            "mornings": len(data.macro["config"]),
            "decisions": len(data.micro["config"]),
            "configurations": _configurations(data),
        }
        self.content["config"] = config
        self.content["finished"] = False
        self.write()

    def phase(self, spec: PhaseSpec, result: PhaseResult, evaluation: Mapping[str, float], digest: str) -> None:
        """Record a finished phase."""
        name, epochs = spec.name, curves(spec.folder, spec.name)
        best = next((epoch for epoch in epochs if epoch["step"] == result.best_epoch), {})
        previous = self.content["phases"].get(name, {})
        self.content["phases"][name] = {
            "epochs": result.epochs,
            "best_epoch": result.best_epoch,
            "stopped_early": result.stopped_early,
            "rows": len(spec.rows),
            "batch_size": spec.batch_size,
            "rows_per_second": result.rows_per_second or previous.get("rows_per_second", 0.0),
            "device": str(spec.device),
            "stages": stages_of(epochs),
            "losses": result.losses,
            "best_losses": {key: value for key, value in best.items() if key.startswith(("train/", "val/"))},
            "evaluation": dict(evaluation),
            "weights": f"{name}.pt",
            "weights_digest": digest,
        }
        self.write()

    def evaluation(self, tables: Mapping[str, Any]) -> None:
        """Record the evaluation of networks and baselines; that of partners' types stays if there is no new one."""
        before = self.content["evaluation"]
        kept = {split: {"partner": table["partner"]} for split, table in before.items() if "partner" in table}
        self.content["evaluation"] = {
            split: {**kept.get(split, {}), **tables.get(split, {})} for split in dict.fromkeys([*tables, *kept])
        }
        self.write()

    def partner_data(self, facts: Mapping[str, Any], config: Any) -> None:  # noqa: ANN401 - plain values
        """Record the snapshots of partners that a run learns from, and the options."""
        self.content["dataset"] |= facts
        self.content["config"] = config
        self.content["finished"] = False
        self.write()

    def log(self, path: str) -> None:
        """Record the path of this start's log; it is written with the next thing that is recorded."""
        self.content["logs"] = [*self.logs, path]

    @property
    def logs(self) -> list[str]:
        """The logs of all starts, the newest last; older records name that of the last start only."""
        earlier = self.content.get("log")
        return [*self.content.get("logs", [] if earlier is None else [earlier])]

    def weights(self, files: Sequence[Path], *, finished: bool) -> None:
        """Record the weights for play, and whether the run is finished."""
        self.content["weights"] = [str(file.relative_to(self.folder)) for file in files]
        self.content["finished"] = finished
        self.write()

    def write(self) -> None:
        """Replace the file atomically."""
        write_sealed(self.folder / RECORD_NAME, self.content)


def _empty() -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "finished": False,
        "config": {},
        "dataset": {},
        "phases": {},
        "evaluation": {},
        "weights": [],
        "logs": [],
    }
