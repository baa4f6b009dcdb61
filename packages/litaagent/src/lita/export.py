"""``lita export``: our agent as a submission for the league."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError

__all__ = ["Config", "run"]


@configuration
class Config:
    """Write our agent as a zip that the league can play: agent, policy, settings, weights, requirements.

    The zip needs scml and numpy and nothing of this project. Unless --no-verify, a world is played from it where this
    project cannot be imported. The same options give the same bytes.
    """

    path: Annotated[Path, Positional] = Path("submission.zip")
    """The zip to write."""

    name: str = "LitaAgentHRL"
    """Name of the agent's class."""

    parameters: str | None = None
    """Tuned parameters: a file, or the name of one that comes with the package. Default: the agent's own."""

    l2: Literal["heuristic", "learned"] = "heuristic"
    """Version of L2, the day's goals."""

    l3: Literal["baseline", "model", "learned"] = "model"
    """Version of L3, the decisions in a thread."""

    l4: Literal["greedy", "joint", "learned"] = "joint"
    """Version of L4, the decisions across threads."""

    weights: Path | None = None
    """Weights of the learned layers: a file or a folder."""

    online: str | None = None
    """Weights of online training, which steer the heuristic layers: a file, or the name of one of the package."""

    verify: bool = True
    """Play a world from the zip without this project."""

    venv: bool = False
    """Verify in a new virtual environment made from the zip's requirements.txt; takes minutes and a package index."""

    days: Annotated[int, Field(ge=3)] = 10
    """Days of the world that verifies."""


def run(config: Config) -> int:
    """Write the zip and play a world from it."""
    from litaagent_std.agents.export import Submission, verify, write

    submission = Submission(config.name, _settings(config), _weights(config), online=config.online is not None)
    write(submission, config.path)
    size = config.path.stat().st_size / 1e6
    print(f"{config.path}: {size:.2f} MB, class {submission.class_path}")
    if config.verify:
        played = verify(config.path, submission.class_path, n_days=config.days, fresh_environment=config.venv)
        where = "a new environment" if config.venv else "isolation"
        print(
            f"verified in {where}, without this project: {played['days']} days, {played['agents']} of the agent, "
            f"{played['contracts']} contracts"
        )
    return 0


def _settings(config: Config) -> dict[str, Any]:
    settings: dict[str, Any] = {"l2": config.l2, "l3": config.l3, "l4": config.l4}
    if config.parameters is not None:
        from litaagent_std.tournament.competitors.parameter_files import read_parameters

        settings["parameters"] = read_parameters(config.parameters)
    return settings


def _weights(config: Config) -> Path | None:
    if config.online is None:
        return config.weights
    if config.weights is not None or (config.l2, config.l3, config.l4) != ("heuristic", "model", "joint"):
        raise ConfigurationError(
            "--online was given together with other weights or other versions of the layers",
            "weights of online training steer the heuristic layers",
            "leave out --weights, --l2, --l3 and --l4, or --online",
        )
    from litaagent_std.agents.online.weights import weights_file

    return weights_file(config.online)
