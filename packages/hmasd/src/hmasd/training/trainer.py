"""Training runs: the engine's run loop with a ``SyncLearner``, its settings and its folder."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from apexrl.agent.runner import LearnResult, Runner
from apexrl.configuration import from_mapping
from apexrl.runs.atomic import StrPath
from apexrl.runs.checkpoints.checkpoint import Schema, load_checkpoint
from apexrl.runs.digest import digest_file
from apexrl.runs.errors import (
    CheckpointDamagedError,
    CheckpointMissingError,
    ConfigMismatchError,
    ConfigurationError,
    SchemaMismatchError,
)
from apexrl.runs.run_dir import archive_run
from apexrl.runs.session import DEFAULT_SINKS, Sink
from hmasd.agent import HMASDAgent
from hmasd.config import HMASDConfig
from hmasd.config.schema import unused_settings
from hmasd.envs.pettingzoo.modules import PREFIX
from hmasd.learning.protocols import Agent
from hmasd.training.evaluation import EvaluationResult
from hmasd.training.learner import FREE_FIELDS, SyncLearner

logger = logging.getLogger(__name__)

SCHEMA: Final = Schema(name=SyncLearner.name, version=SyncLearner.schema_version)
FINAL_NAME: Final = "hmasd_sync_enhanced_final.pth"
MODELS: Final = "models"
LOGS: Final = "logs"
_RUN_FILES: Final = (
    "models",
    "tf-logs",
    "logs/metrics.jsonl",
    "logs/timings.jsonl",
    "logs/run.json",
    "logs/tensorboard.log",
)
"""What belongs to one run, beside the ``.set-aside`` files in ``logs``. ``logs/train.log`` does not: it is open while a
run is moved, and has the lines of all runs of the folder, one after the other."""


class Trainer(Runner):
    """A training run: the engine's loop over batches of ``batch_size`` environment steps.

    Args:
        config: Task, algorithm and hyperparameters.
        folder: Where ``models``, ``tf-logs`` and ``logs`` go; if None, no metrics are written.
        models: Folder of checkpoints; if None, ``models`` in ``folder``.
        sinks: Where metrics go; if None, ``logs/metrics.jsonl`` and ``tf-logs``.
    """

    learner: SyncLearner

    def __init__(
        self,
        config: HMASDConfig,
        folder: StrPath | None = None,
        *,
        models: StrPath | None = None,
        sinks: Sequence[Sink] | None = None,
    ) -> None:
        self.folder = folder = None if folder is None else Path(folder)
        models = None if models is None else Path(models)
        is_saved = folder is not None or models is not None
        super().__init__(
            SyncLearner(config),
            log_dir=None if folder is None else folder / LOGS,
            save_dir=models if folder is None or models is not None else folder / MODELS,
            save_interval=config.checkpoint_interval if is_saved else 0,
            eval_interval=config.eval_interval,
            interval_unit="progress",
            save_last=is_saved,
            eval_last=True,
            keep_last=config.keep_checkpoints,
            sinks=DEFAULT_SINKS if sinks is None else sinks,
            show_progress=False,
        )

    @property
    def config(self) -> HMASDConfig:
        """The settings."""
        return self.learner.settings

    @property
    def agent(self) -> Agent:
        """The algorithm with its networks."""
        return self.learner.agent

    @property
    def last_evaluation(self) -> EvaluationResult | None:
        """Episodes of the last evaluation."""
        return self.learner.last_evaluation

    @property
    def env_steps(self) -> int:
        """Environment steps so far."""
        return self.total_timesteps

    @property
    def is_complete(self) -> bool:
        """Whether ``total_steps`` are done and the final checkpoint is there, undamaged and of the last step.

        A kill may come between the last periodic checkpoint and the final one; :meth:`run` then writes it.
        """
        if self.env_steps < self.config.total_steps:
            return False
        folder = self._checkpoints.folder
        if folder is None:
            return True
        try:
            final = load_checkpoint(folder / FINAL_NAME, SCHEMA)
        except (CheckpointMissingError, CheckpointDamagedError):
            return False
        return bool(final.state["env_steps"] == self.env_steps)

    def run(self) -> LearnResult:
        """Train up to ``total_steps`` environment steps."""
        return self.learn(total_timesteps=self.config.total_steps)

    def resume(self, *, reset_learning_rate: bool = False) -> bool:
        """Load the newest undamaged checkpoint, the final one included, if there is one; return whether there was.

        Raises:
            ConfigMismatchError: A field that is not in :data:`FREE_FIELDS` differs.
            SchemaMismatchError: It was written by another release.
        """
        newest = self._checkpoints.newest()
        if newest is not None:
            hint = "give its settings to resume it, or train in another folder"
            _check_same(newest.config, self.config, f"in {str(self._checkpoints.folder)!r}", hint)
        return super().resume(reset_learning_rate=reset_learning_rate)

    @classmethod
    def from_checkpoint(
        cls, path: StrPath, config: HMASDConfig | None = None, folder: StrPath | None = None
    ) -> "Trainer":
        """Return a run that continues from a checkpoint.

        Args:
            path: The checkpoint.
            config: May differ from the checkpoint's in :data:`FREE_FIELDS`; if None, the checkpoint's is used.
            folder: The run's folder.

        Raises:
            ConfigMismatchError: Another field differs.
            ConfigurationError: The task is a module that only the checkpoint names; see :func:`stored_config`.
        """
        if config is None:
            config = stored_config(path)
        else:
            hint = "leave out --config, --preset or --set to use its settings, or start a new run without --model-path"
            _check_same(load_checkpoint(path, SCHEMA).config, config, repr(str(path)), hint)
        trainer = cls(config, folder)
        trainer.load_checkpoint(Path(path).absolute())
        return trainer

    def load_skills(self, path: StrPath) -> None:
        """Start from the frozen skills of another run of HMASD: its discoverer and, where they fit, its discriminators.

        Raises:
            SchemaMismatchError: The checkpoint is of a baseline, or its discoverer has other sizes.
            ConfigurationError: This run would train the skills on, or is one with the skills of another checkpoint.
        """
        stored, agent = load_checkpoint(path, SCHEMA), self.agent
        if not isinstance(agent, HMASDAgent) or stored.config["algorithm"] != "hmasd":
            raise SchemaMismatchError(
                f"{str(path)!r} is of algorithm {stored.config['algorithm']!r}, this run of {self.config.algorithm!r}",
                "skills are those of HMASD",
                "give a checkpoint of a run with algorithm=hmasd, to such a run",
            )
        self._check_source(path)
        networks, own_networks = stored.state["learner"]["low"]["networks"], agent.low.networks.state_dict()
        sizes = zip(_SIZES, _sizes(networks, read_config(path)), _sizes(own_networks, self.config), strict=True)
        differences = [f"{given} {name} and not {own}" for name, given, own in sizes if given != own]
        if networks.keys() != own_networks.keys():  # continuous actions have a deviation, which is a parameter
            differences.append("actions of another kind")
        if differences:
            raise SchemaMismatchError(
                f"the skills in {str(path)!r}, of task {stored.config['task']}, do not fit task {self.config.task}: "
                f"they have {', '.join(differences)}",
                "skills are used on the observations and actions, and in the sizes, that they were trained with",
                "choose a task with the same observations and actions, and the checkpoint's settings of skills",
            )
        agent.load_skills(stored.state["learner"])

    def _check_source(self, path: StrPath) -> None:
        """Refuse skills that would not stay as they are, or that are not those of the configuration."""
        if not self.config.freeze_skills:  # its critic would be taken without the scale of its values
            raise ConfigurationError(
                f"freeze_skills=False: the skills of {str(path)!r} would be trained on",
                "skills of another run stay frozen",
                "set freeze_skills=True",
            )
        expected, actual = self.config.skills_digest, digest_file(path)
        if expected not in (None, actual):
            raise ConfigurationError(
                f"{str(path)!r} has the SHA-256 {actual}, but skills_digest={expected!r}",
                "a run has the skills of one checkpoint",
                "give that checkpoint, or start a new run with this one",
            )

    @property
    def newest_checkpoint(self) -> Path | None:
        """Path of the furthest periodic checkpoint, if there is one."""
        return self._checkpoints.newest_path

    def archive_previous(self) -> None:
        """Move another run that is in the folder to ``earlier/1`` or the next free number."""
        if self.folder is not None:
            aside = sorted(path.name for path in (self.folder / LOGS).glob("*.set-aside*"))
            archive_run(self.folder, [*_RUN_FILES, *(f"{LOGS}/{name}" for name in aside)])


def read_config(path: StrPath) -> HMASDConfig:
    """Return the configuration in a checkpoint, whose task may be a module; nothing is imported."""
    return _from_stored(load_checkpoint(path, SCHEMA).config, repr(str(path)))


def stored_config(path: StrPath, changes: Mapping[str, Any] | None = None) -> HMASDConfig:
    """Return the configuration in a checkpoint, with some fields changed.

    Raises:
        ConfigurationError: A change breaks a rule; or the task is a module and ``changes`` does not name it, because
            a file from an unknown source must not decide what is imported.
    """
    changes = changes or {}
    config = _from_stored(load_checkpoint(path, SCHEMA).config, repr(str(path)), changes)
    if config.task.startswith(PREFIX) and "task" not in changes:
        raise ConfigurationError(
            f"checkpoint {str(path)!r} is of task {config.task}, a module that loading it would import",
            "a checkpoint does not decide what is imported",
            f"name the task if you trust it: `--set task={config.task}` with train, --eval-only included, "
            f"`--task {config.task}` with eval and render",
        )
    return config


def _from_stored(stored: Mapping[str, Any], source: str, changes: Mapping[str, Any] | None = None) -> HMASDConfig:
    """Return the configuration in a checkpoint; of an earlier release it may have settings that nothing uses."""
    unused = unused_settings(stored.get("algorithm", "hmasd"), stored.get("ablation", "none"))
    values = {name: value for name, value in stored.items() if name not in unused}
    changed = " with changed settings" if changes else ""
    return from_mapping(HMASDConfig, {**values, **(changes or {})}, f"the configuration in {source}{changed}")


_SIZES: Final = ("numbers in an observation", "action outputs", "skills of an agent", "hidden units")


def _sizes(discoverer: Mapping[str, Tensor], config: HMASDConfig) -> tuple[int, ...]:
    """Return what :data:`_SIZES` names, from the weights of a discoverer and the settings that it was made with."""
    n_skills = config.team_skills if config.ablation == "no_indi" else config.agent_skills
    n_outputs, n_hidden = discoverer["to_action.weight"].shape
    n_inputs = discoverer["actor.features.0.weight"].shape[0]  # its LayerNorm has a weight for each input
    return n_inputs - n_skills, n_outputs, n_skills, n_hidden


def _check_same(stored: Mapping[str, Any], wanted: HMASDConfig, source: str, hint: str) -> None:
    before = _from_stored(stored, source)
    names = [field.name for field in fields(HMASDConfig) if field.name not in FREE_FIELDS]
    different = [name for name in names if getattr(before, name) != getattr(wanted, name)]
    if different:
        lines = ", ".join(f"{name}: {getattr(before, name)!r} → {getattr(wanted, name)!r}" for name in different)
        raise ConfigMismatchError(
            f"the checkpoint {source} was made with another configuration ({lines})",
            f"only {', '.join(sorted(FREE_FIELDS))} may change when a run is resumed",
            hint,
        )


def train(config: HMASDConfig, *, models: StrPath | None = None, sinks: Sequence[Sink] = ()) -> Trainer:
    """Train a new run to its end, or to a signal, and return it.

    Args:
        config: Task, algorithm and hyperparameters.
        models: Folder of checkpoints; if None, nothing is saved. A run that is there is moved to ``earlier/``.
        sinks: Where metrics are written.
    """
    trainer = Trainer(config, models=models, sinks=sinks)
    trainer.run()
    for sink in sinks:
        if not isinstance(sink, str):
            sink.close()
    return trainer
