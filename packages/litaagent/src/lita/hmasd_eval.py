"""``lita hmasd eval``: evaluate a checkpoint of ``lita hmasd train``."""

from pathlib import Path
from typing import Annotated

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration


@configuration
class Config:
    """Play whole episodes with a checkpoint's policy and print the means as JSON."""

    model_path: Annotated[Path, Positional]
    """The checkpoint, for instance models/hmasd_sync_enhanced_final.pth."""
    task: str | None = None
    """The checkpoint's task; needed for `pettingzoo:MODULE` only, because that module is imported."""
    episodes: Annotated[int, Field(ge=1)] | None = None
    """Number of episodes; as many as in training if not given, which then gives the same result as training did."""
    deterministic: bool | None = None
    """Take the most probable skills and actions (True) or draw them (False); as training did if not given."""


def run(config: Config) -> int:
    """Evaluate and print."""
    from hmasd import command

    changes = [] if config.task is None else [f"task={config.task}"]
    if config.episodes is not None:
        changes.append(f"eval_episodes={config.episodes}")
    if config.deterministic is not None:
        changes.append(f"eval_deterministic={str(config.deterministic).lower()}")
    return command.run(command.TrainCommand(model_path=config.model_path, eval_only=True, set=tuple(changes)))
