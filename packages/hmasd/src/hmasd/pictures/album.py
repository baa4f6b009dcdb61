"""All pictures of a checkpoint or of a run's metrics, written into a folder."""

from pathlib import Path

import numpy as np

from apexrl.runs.atomic import ensure_folder, write_text
from apexrl.runs.metrics.jsonl import read_jsonl
from hmasd.agent import HMASDAgent
from hmasd.pictures.charts import Curve, confusion_matrix, learning_curves, usage_bars
from hmasd.pictures.episodes import animate, record
from hmasd.pictures.skills import skill_report
from hmasd.training.trainer import Trainer, stored_config


def render_checkpoint(model_path: Path, folder: Path, seed: int = 0, task: str | None = None) -> list[Path]:
    """Draw an episode and, for HMASD, usage and confusion of its skills.

    Args:
        model_path: The checkpoint.
        folder: Where the pictures go.
        seed: Seed of the episodes.
        task: The checkpoint's task, which must be named if it is a module to import.

    Returns:
        The files written.
    """
    trainer = Trainer.resume(model_path, stored_config(model_path, {"task": task} if task else None))
    pictures = {"episode.svg": animate(record(trainer.learner, trainer.config, seed), trainer.config.task)}
    if isinstance(trainer.learner, HMASDAgent):
        report = skill_report(trainer.learner, seed)
        pictures |= {
            "team_skill_usage.svg": usage_bars(report.team_usage.tolist(), title="Team skills chosen", label="Z"),
            "individual_skill_usage.svg": usage_bars(
                report.agent_usage.tolist(), title="Individual skills chosen", label="z"
            ),
            "team_confusion.svg": confusion_matrix(report.team_confusion, title="Team discriminator"),
            "individual_confusion.svg": confusion_matrix(report.agent_confusion, title="Individual discriminator"),
        }
    return _write(pictures, folder)


def render_metrics(metrics: Path, folder: Path, name: str) -> list[Path]:
    """Draw the evaluation curve of one run; the band is one standard deviation over the episodes of an evaluation."""
    rows = [row for row in read_jsonl(metrics) if "Eval/ReturnMean" in row]
    if not rows:
        return []
    mean = np.array([row["Eval/ReturnMean"] for row in rows])
    spread = np.array([row["Eval/ReturnStd"] for row in rows])
    curve = Curve(
        name=name,
        x=[float(row["step"]) for row in rows],
        mean=mean.tolist(),
        low=(mean - spread).tolist(),
        high=(mean + spread).tolist(),
    )
    chart = learning_curves(
        [curve],
        title="Evaluation (band: ± standard deviation over episodes)",
        x_label="environment steps",
        y_label="return",
    )
    return _write({"evaluation.svg": chart}, folder)


def _write(pictures: dict[str, str], folder: Path) -> list[Path]:
    ensure_folder(folder)
    for name, content in pictures.items():
        write_text(folder / name, content)
    return [folder / name for name in pictures]
