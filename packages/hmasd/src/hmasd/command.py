"""The commands of the package: train, evaluate, render pictures and list settings.

Each command has a configuration class, whose fields are its options, and a function that takes it and returns the exit
status. ``python -m hmasd`` and ``train_sync_enhanced.py`` run them.
"""

import json
import logging
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TextIO

import torch
import yaml
from pydantic import Field
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from apexrl.configuration import configuration, from_command_line, from_mapping, to_mapping
from apexrl.runs.atomic import ensure_folder
from apexrl.runs.checkpoints.checkpoint import load_checkpoint
from apexrl.runs.digest import digest_file
from apexrl.runs.errors import ConfigMismatchError, ConfigurationError, SchemaMismatchError, UserFacingError
from apexrl.runs.lock import exclusive
from apexrl.runs.logs import log_to_file
from hmasd.config import ALIASES, HMASDConfig, list_settings, load_config, plain_number, preset
from hmasd.training.trainer import LOGS, MODELS, SCHEMA, Trainer, read_config, stored_config

logger = logging.getLogger(__name__)

SKILL_FIELDS: Final = (
    "n_team_skills",
    "n_agent_skills",
    "skill_steps",
    "hidden_size",
    "ablation",
    "discriminator_lipschitz",
)
"""Settings that a run with ``--skills-from`` takes from the checkpoint."""


@configuration
class TrainCommand:
    """Train HMASD or a baseline; checkpoints go to models/, TensorBoard events to tf-logs/, logs to logs/.

    Settings (`python -m hmasd settings` lists them) come from --preset or --config, then from --set. The same command
    resumes an unfinished run of the same settings; a run of other settings is moved to earlier/ first. --model-path
    resumes exactly where that checkpoint was made; with --eval-only it is evaluated instead.
    """

    preset: str | None = None
    """Start from a preset: alice_and_bob, paper (the same without restarts), cramped_room, coordination_ring
    (both also with _old_dynamics), uav_coverage or uav_relay."""
    config: Path | None = None
    """Start from a file instead: YAML, or Python assignments such as config_1.py, which are read and not executed."""
    set: tuple[str, ...] = ()
    """Change single settings, for instance `--set seed=3 total_steps=100000`."""
    model_path: Path | None = None
    """Resume this checkpoint; its configuration is used unless settings are given too."""
    skills_from: Path | None = None
    """Take the skills of this checkpoint, freeze them and train a new coordinator, on another task for instance. Its
    n_team_skills, n_agent_skills, skill_steps, hidden_size, ablation and discriminator_lipschitz replace those of
    --preset, --config and the defaults; --set may not contradict them. With another checkpoint it is another run."""
    eval_only: bool = False
    """Evaluate the checkpoint of --model-path instead of training."""
    fresh: bool = False
    """Train from the start even if the folder holds a run of the same settings, which is moved to earlier/."""
    folder: Path = Path(".")
    """Where models/, tf-logs/ and logs/ are."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Lowest level of log lines on the console and in logs/train.log."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads of torch; the networks are small, so more than one seldom helps."""


@configuration
class EvalCommand:
    """Play whole episodes with a checkpoint's policy and print the means as JSON."""

    model_path: Annotated[Path, Positional]
    """The checkpoint, for instance models/hmasd_sync_enhanced_final.pth."""
    task: str | None = None
    """The checkpoint's task; needed for pettingzoo:MODULE only, because that module is imported."""
    episodes: Annotated[int, Field(ge=1)] | None = None
    """Number of episodes; default: as many as in training, which gives the same result as training."""
    deterministic: bool | None = None
    """Take the most probable skills and actions (True) or sample them (False); default: as in training."""


@configuration
class RenderCommand:
    """Draw an animated episode, skill usage, discriminator confusion and the evaluation curve, as SVG files.

    Agents of pettingzoo:MODULE have no positions, so no episode is drawn there.
    """

    model_path: Annotated[Path, Positional]
    """The checkpoint, for instance models/hmasd_sync_enhanced_final.pth."""
    out: Path = Path("pictures")
    """Folder of the pictures."""
    metrics: Path | None = None
    """Metrics of the run, for instance logs/metrics.jsonl, for the evaluation curve."""
    task: str | None = None
    """The checkpoint's task; needed for pettingzoo:MODULE only, because that module is imported."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of the episodes that are drawn."""


@configuration
class SettingsCommand:
    """List every setting of training with its default and its meaning."""

    preset: str | None = None
    """Show the values of this preset instead of the defaults; --preset of `train` lists the names."""
    config: Path | None = None
    """Show the values with this file instead, for instance config_1.py."""


def train(config: TrainCommand) -> int:
    """Train, resume or, with ``eval_only``, evaluate; returns the exit status."""
    torch.set_num_threads(config.threads)
    for name, value in (("--fresh", config.fresh), (f"--skills-from {config.skills_from}", config.skills_from)):
        if value and config.model_path is not None:
            raise ConfigurationError(
                f"{name} starts a new run and --model-path {config.model_path} resumes or evaluates one; "
                "give one of them"
            )
    if config.eval_only:
        return _evaluate_checkpoint(config)
    logs = config.folder / LOGS
    ensure_folder(logs)
    level = logging.getLevelNamesMapping()[config.log_level]
    with _log_to_console(level), log_to_file(logs / "train.log", level):
        with exclusive(logs):  # nobody else is at work here while an earlier run is looked at, or moved
            trainer = _trainer(config)
        return _train(trainer, config)


def evaluate(config: EvalCommand) -> int:
    """Evaluate a checkpoint and print the means; returns the exit status."""
    if config.task is not None:
        stored = load_checkpoint(config.model_path, SCHEMA).config["task"]
        if stored != config.task:
            raise ConfigurationError(
                f"--task {config.task}: the checkpoint is of task {stored}; leave --task out, or name that task if it "
                "is a module"
            )
    changes = [] if config.task is None else [f"task={config.task}"]
    if config.episodes is not None:
        changes.append(f"eval_episodes={config.episodes}")
    if config.deterministic is not None:
        changes.append(f"eval_deterministic={str(config.deterministic).lower()}")
    return train(TrainCommand(model_path=config.model_path, eval_only=True, set=tuple(changes)))


def render(config: RenderCommand) -> int:
    """Write the pictures of a checkpoint and print their paths; returns the exit status."""
    from hmasd.pictures.render import render_checkpoint, render_metrics

    if config.metrics is not None and not config.metrics.is_file():
        raise ConfigurationError(
            f"--metrics {config.metrics}: there is no such file; training writes logs/metrics.jsonl"
        )
    paths = render_checkpoint(config.model_path, config.out, config.seed, config.task)
    if config.metrics is not None:
        paths += render_metrics(config.metrics, config.out, config.model_path.stem)
    if not paths:
        raise ConfigurationError(
            f"there is nothing to draw of {config.model_path}: its agents have no positions and no skills; "
            "give --metrics logs/metrics.jsonl for the evaluation curve"
        )
    for path in paths:
        print(path)
    return 0


def settings(config: SettingsCommand) -> int:
    """Print the table of settings; returns the exit status."""
    table = Table("setting", "value", "meaning")
    for setting in list_settings(settings_of(TrainCommand(preset=config.preset, config=config.config))):
        also = f" (also {setting.symbol})" if setting.symbol else ""
        table.add_row(setting.name, repr(setting.value), setting.meaning + also)
    Console(markup=False, emoji=False).print(table)
    return 0


def run_command(config_class: type[Any], run: Callable[[Any], int], options: Sequence[str], program: str) -> int:
    """Parse the options of a command and run it; errors of the user are printed and give exit status 2.

    Args:
        config_class: Configuration class of the command.
        run: Function that takes the configuration.
        options: Command line without the program.
        program: Name of the program in help and errors.
    """
    try:
        return run(from_command_line(config_class, options, program=program))
    except UserFacingError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{program}: interrupted; run the same command again to resume", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of standard output is gone, as with `… | head`
        sys.stderr.close()
        return 141


def _train(trainer: Trainer, command: TrainCommand) -> int:
    if trainer.env_steps >= trainer.config.total_steps:
        if not trainer.is_complete:
            trainer.run()
        logger.info("训练已完成: %d 步; 增大 total_steps 继续, 或用 --fresh 重新训练", trainer.env_steps)
        return _show_evaluation(trainer)
    logger.info("配置: %s", json.dumps(to_mapping(trainer.config)))
    result = trainer.run()
    if result.stopped_by == "signal" and command.model_path is None:
        logger.info("已保存: 步数 %d; 再次运行同一命令即可继续", trainer.env_steps)
    elif result.stopped_by == "signal":  # the same command would go back to its checkpoint
        newest = trainer.newest_checkpoint
        logger.info("已保存: 步数 %d; 用 --model-path %s 继续", trainer.env_steps, newest)
    if trainer.last_evaluation is not None:
        print(json.dumps(trainer.last_evaluation.metrics(trainer.config.task)))
    return result.exit_code


def _trainer(command: TrainCommand) -> Trainer:
    """Return the run of ``--model-path``, the run in the folder, or a new one."""
    config = settings_of(command)
    if command.model_path is not None:
        trainer = Trainer.from_checkpoint(command.model_path, config, command.folder)
        if command.model_path.resolve().parent != (command.folder / MODELS).resolve():
            trainer.archive_previous()  # the checkpoint is from another folder, so the run in this one is another run
        return _announce(trainer)
    config = config or HMASDConfig()
    if command.skills_from is not None:
        config = _with_skills_of(command.skills_from, config, _changes(command))
    elif config.freeze_skills:
        raise ConfigurationError(
            "freeze_skills=True trains a coordinator of skills that exist, and a new run has none; "
            "name a checkpoint that has them by --skills-from, or leave freeze_skills out"
        )
    trainer = Trainer(config, command.folder)  # first, because it refuses settings that cannot run
    try:
        if not command.fresh and trainer.resume():
            return _announce(trainer)
    except (ConfigMismatchError, SchemaMismatchError) as error:
        logger.warning("a new run starts: %s", error)
        trainer = Trainer(config, command.folder)
    if command.skills_from is not None:
        trainer.load_skills(command.skills_from)
    trainer.archive_previous()
    return trainer


def _with_skills_of(path: Path, config: HMASDConfig, explicit: Collection[str]) -> HMASDConfig:
    """Return settings that train a coordinator of the skills in a checkpoint.

    Args:
        path: The checkpoint.
        config: Settings without skills; those of :data:`SKILL_FIELDS` are replaced by the checkpoint's.
        explicit: Names of settings that were given by ``--set`` and are not replaced.

    Raises:
        ConfigurationError: An explicit setting is not the checkpoint's.
    """
    stored = read_config(path)
    needed = {name: getattr(stored, name) for name in SKILL_FIELDS}
    needed |= {"freeze_skills": True, "skills_digest": digest_file(path)}
    replaced = {name: getattr(config, name) for name, value in needed.items() if getattr(config, name) != value}
    refused = [name for name in replaced if name in explicit]
    if refused:
        lines = ", ".join(f"{name}={replaced[name]!r}, the skills need {needed[name]!r}" for name in refused)
        raise ConfigurationError(
            f"--set contradicts --skills-from {path}: {lines}",
            "skills are used as they were trained",
            f"leave {', '.join(refused)} out of --set, or name skills that were trained with the values you want",
        )
    shown = [f"{name}: {replaced[name]!r} → {needed[name]!r}" for name in SKILL_FIELDS if name in replaced]
    if shown:
        logger.info("settings of the skills in %s replace others: %s", path, ", ".join(shown))
    return from_mapping(HMASDConfig, to_mapping(config) | needed, repr(str(path)))


def _announce(trainer: Trainer) -> Trainer:
    logger.info("从检查点继续: 步数: %d, 策略版本: %d", trainer.env_steps, trainer.agent.version)
    return trainer


def _evaluate_checkpoint(command: TrainCommand) -> int:
    if command.model_path is None:
        raise ConfigurationError("--eval-only needs a checkpoint to evaluate; give it by --model-path")
    return _show_evaluation(Trainer.from_checkpoint(command.model_path, settings_of(command)))


def _show_evaluation(trainer: Trainer) -> int:
    print(json.dumps(trainer.eval()))
    return 0


def settings_of(command: TrainCommand) -> HMASDConfig | None:
    """Return the settings of the command, or None if it has none.

    With ``--model-path`` and ``--set`` only, the changes apply to the checkpoint's configuration.

    Raises:
        ConfigurationError: Both a preset and a file are given, or a change is not of the form name=value.
    """
    changes = _changes(command)
    if command.preset is not None and command.config is not None:
        raise ConfigurationError(
            f"--preset {command.preset} and --config {command.config} exclude each other; give one of them"
        )
    if command.preset is not None:
        return preset(command.preset, **changes)
    if command.config is not None:
        return load_config(command.config, changes)
    if not changes:
        return None
    if command.model_path is not None:
        return stored_config(command.model_path, changes)
    return from_mapping(HMASDConfig, changes, "--set")


def _changes(command: TrainCommand) -> dict[str, Any]:
    """Return the settings that ``--set`` gives, by the names of their fields."""
    changes: dict[str, Any] = {}
    for name, value in map(_change, command.set):
        if name in changes:
            raise ConfigurationError(
                f"--set gives {name} twice, as {changes[name]!r} and as {value!r}; keep one of them"
            )
        changes[name] = value
    return changes


def _change(word: str) -> tuple[str, Any]:
    name, separator, value = word.partition("=")
    if not separator:
        raise ConfigurationError(f"--set {word}: changes are of the form name=value, for instance --set seed=3")
    try:
        return ALIASES.get(name, name), plain_number(yaml.safe_load(value))
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"--set {word}: {value!r} is not a plain value; write a number, a word, true, false or null"
        ) from error


class _Console(logging.StreamHandler[TextIO]):
    """Log lines on standard output until its reader is gone."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Stop writing when the reader is gone (``… | head``); the log file has everything."""
        if isinstance(sys.exception(), BrokenPipeError):
            logging.getLogger().removeHandler(self)
        else:
            super().handleError(record)


@contextmanager
def _log_to_console(level: int) -> Iterator[None]:
    """Show log lines on standard output while the block runs."""
    handler = _Console(sys.stdout)
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter("%(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
