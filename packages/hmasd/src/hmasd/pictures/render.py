"""All pictures of a checkpoint or of a run's metrics, written into a folder."""

from pathlib import Path

import numpy as np

from apexrl.charts import Curve, learning_curves, save_figure
from apexrl.runs.atomic import ensure_folder, write_text
from apexrl.runs.metrics.jsonl import read_jsonl
from hmasd.agent import HMASDAgent
from hmasd.pictures.episodes import animate, is_drawn, record
from hmasd.pictures.skills import skill_charts, skill_report
from hmasd.training import Trainer, stored_config


def render_checkpoint(model_path: Path, folder: Path, seed: int = 0, task: str | None = None) -> list[Path]:
    """Draw an episode, where agents have positions, and, for HMASD, usage and confusion of its skills.

    Args:
        model_path: The checkpoint.
        folder: Folder of the pictures.
        seed: Seed of the episodes.
        task: The checkpoint's task, which must be given if it is a module to import.

    Returns:
        The files written.
    """
    trainer = Trainer.from_checkpoint(model_path, stored_config(model_path, {"task": task} if task else None))
    config = trainer.config
    episodes = [animate(record(trainer.agent, config, seed), config.task)] if is_drawn(config.task) else []
    charts = skill_charts(skill_report(trainer.agent, seed)) if isinstance(trainer.agent, HMASDAgent) else []
    ensure_folder(folder)
    for episode in episodes:
        write_text(folder / "episode.svg", episode)
    written = [folder / "episode.svg"] * len(episodes)
    return [*written, *(path for chart in charts for path in save_figure(chart, folder, ("svg",)))]


def render_metrics(metrics: Path, folder: Path, name: str) -> list[Path]:
    """Draw the evaluation curve of one run; the band is one standard deviation over the episodes of an evaluation.

    Args:
        metrics: The run's ``metrics.jsonl``.
        folder: Folder of the picture.
        name: Name of the run in the legend.

    Returns:
        The file written, or nothing if the run was not evaluated.
    """
    rows = [row for row in read_jsonl(metrics) if "Eval/ReturnMean" in row]
    if not rows:
        return []
    mean = np.array([row["Eval/ReturnMean"] for row in rows])
    deviation = np.array([row["Eval/ReturnStd"] for row in rows])
    curve = Curve(
        name=name,
        x=[float(row["step"]) for row in rows],
        mean=mean.tolist(),
        low=(mean - deviation).tolist(),
        high=(mean + deviation).tolist(),
    )
    title = "Evaluation (band: ± standard deviation over episodes)"
    ensure_folder(folder)
    chart = learning_curves([curve], name="evaluation", title=title, y_title="return")
    return save_figure(chart, folder, ("svg",))
