"""What the commands do: ``train_sync_enhanced.py`` and ``lita hmasd train`` both end here."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import torch
import yaml
from pydantic import Field

from apexrl.configuration import configuration, from_mapping, to_mapping
from apexrl.runs.atomic import ensure_folder
from apexrl.runs.checkpoints.checkpoint import CheckpointStore
from apexrl.runs.errors import ConfigMismatchError, ConfigurationError, SchemaMismatchError
from apexrl.runs.lock import exclusive
from apexrl.runs.logs import log_to_file
from apexrl.runs.metrics.jsonl import JsonlSink
from apexrl.runs.metrics.logger import MetricLogger, MetricSink
from apexrl.runs.metrics.tensorboard import TensorBoardSink
from apexrl.runs.signals import stop_on_signals
from hmasd.config.file import ALIASES, load_config
from hmasd.config.presets import preset
from hmasd.config.schema import HMASDConfig
from hmasd.training.evaluation import evaluate
from hmasd.training.run_folder import EVENTS, LOGS, METRICS, MODELS, newest_checkpoint, set_aside
from hmasd.training.trainer import PATTERN, SCHEMA, Trainer, stored_config

logger = logging.getLogger(__name__)


@configuration
class TrainCommand:
    """Train HMASD or a baseline; checkpoints go to models/, TensorBoard events to tf-logs/, logs to logs/.

    Settings (`lita hmasd settings` lists them) come from --preset or --config, then from --set. The same command again
    goes on with an unfinished run of the same settings; a run of other settings is moved to earlier/ first. With
    --model-path a run goes on exactly where that checkpoint was made; with --eval-only it is evaluated instead.
    """

    preset: str | None = None
    """Start from a preset: paper (Alice_and_Bob), uav_coverage or uav_relay."""
    config: Path | None = None
    """Start from a file instead: YAML, or Python assignments such as config_1.py, which are read and not executed."""
    set: tuple[str, ...] = ()
    """Change single settings, for instance `--set seed=3 total_steps=100000`."""
    model_path: Path | None = None
    """Go on from this checkpoint; its configuration is taken over unless settings are given too."""
    eval_only: bool = False
    """Evaluate the checkpoint of --model-path and leave."""
    fresh: bool = False
    """Train from the start even if the folder holds a run of the same settings, which is moved to earlier/."""
    folder: Path = Path(".")
    """Where models/, tf-logs/ and logs/ are."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """How much is logged, to the console and to logs/train.log."""
    threads: Annotated[int, Field(ge=1)] = 1
    """Threads of torch; the networks are small, so more than one seldom helps."""


def run(command: TrainCommand) -> int:
    """Train or evaluate; the exit status."""
    torch.set_num_threads(command.threads)
    if command.eval_only:
        return _evaluate(command)
    if command.fresh and command.model_path is not None:
        raise ConfigurationError(
            f"--fresh begins a new run and --model-path {command.model_path} goes on with one; give one of them"
        )
    logs = command.folder / LOGS
    ensure_folder(logs)
    level = logging.getLevelNamesMapping()[command.log_level]
    with _log_to_console(level), log_to_file(logs / "train.log", level), exclusive(logs):
        return _train(command)


def _train(command: TrainCommand) -> int:
    trainer = _trainer(command)
    if trainer.env_steps >= trainer.config.total_steps:
        logger.info("训练已完成: %d 步; 增大 total_steps 继续, 或用 --fresh 重新训练", trainer.env_steps)
        return _show_evaluation(trainer)
    logger.info("配置: %s", json.dumps(to_mapping(trainer.config)))
    after = trainer.env_steps or None
    sinks: list[MetricSink] = [
        JsonlSink(command.folder / METRICS, after),
        TensorBoardSink(command.folder / EVENTS, after),
    ]
    with MetricLogger(sinks, after) as metrics, stop_on_signals() as stop:
        trainer.run(metrics, stop)
    if stop.requested:
        logger.info("已保存: 步数 %d; 再次运行同一命令即可继续", trainer.env_steps)
    if trainer.last_evaluation is not None:
        print(json.dumps(trainer.last_evaluation.metrics(trainer.config.task)))
    return stop.exit_code


def _trainer(command: TrainCommand) -> Trainer:
    """Return the run that the command means: that of ``--model-path``, the one in the folder, or a new one."""
    config = settings_of(command)
    if command.model_path is not None:
        return _go_on(command.model_path, config, command.folder)
    config = config or HMASDConfig()
    try:
        found = None if command.fresh else newest_checkpoint(command.folder / MODELS)
        if found is not None:
            return _go_on(found, config, command.folder)
    except (ConfigMismatchError, SchemaMismatchError) as error:
        logger.warning("a new run begins: %s", error)
    trainer = Trainer(config, command.folder / MODELS)  # before anything moves: it refuses settings that cannot run
    _make_room(command.folder)
    return trainer


def _go_on(path: Path, config: HMASDConfig | None, folder: Path) -> Trainer:
    models = folder / MODELS
    trainer = Trainer.resume(path, config, models)
    if path.resolve().parent == models.resolve():
        CheckpointStore(models, SCHEMA, pattern=PATTERN).rewind(trainer.env_steps)
    else:  # a checkpoint from elsewhere: what is here belongs to another run
        _make_room(folder)
    logger.info("从检查点继续: %s, 步数: %d, 策略版本: %d", path, trainer.env_steps, trainer.learner.version)
    return trainer


def _make_room(folder: Path) -> None:
    if (earlier := set_aside(folder)) is not None:
        logger.warning("the run that was in %s is now in %s", folder, earlier)


def _evaluate(command: TrainCommand) -> int:
    if command.model_path is None:
        raise ConfigurationError("--eval-only needs a checkpoint to evaluate; name it by --model-path")
    return _show_evaluation(Trainer.resume(command.model_path, settings_of(command)))


def _show_evaluation(trainer: Trainer) -> int:
    result = evaluate(trainer.learner, trainer.config, trainer.env_steps)
    print(json.dumps(result.metrics(trainer.config.task)))
    return 0


def settings_of(command: TrainCommand) -> HMASDConfig | None:
    """Return the settings that the command names, or None if it names none.

    With ``--model-path`` and ``--set`` only, the changes apply to the checkpoint's configuration.

    Raises:
        ConfigurationError: Both a preset and a file are given, or a change is not of the form name=value.
    """
    changes = dict(_change(word) for word in command.set)
    if command.preset is not None and command.config is not None:
        raise ConfigurationError(
            f"--preset {command.preset} and --config {command.config} both name a start; give one of them"
        )
    if command.preset is not None:
        return preset(command.preset, **changes)
    if command.config is not None:
        return load_config(command.config, changes)
    if not changes:
        return None
    if command.model_path is not None:
        return stored_config(command.model_path, changes)
    return from_mapping(HMASDConfig, changes, "the command line")


def _change(word: str) -> tuple[str, Any]:
    name, found, value = word.partition("=")
    if not found:
        raise ConfigurationError(f"--set {word}: changes are of the form name=value, for instance --set seed=3")
    try:
        return ALIASES.get(name, name), yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"--set {word}: {value!r} is not a plain value; write a number, a word, true, false or null"
        ) from error


class _Console(logging.StreamHandler[TextIO]):
    """Log lines on standard output, as long as somebody reads them."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Fall silent when the reader has gone (``… | head``); the log file has everything."""
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
