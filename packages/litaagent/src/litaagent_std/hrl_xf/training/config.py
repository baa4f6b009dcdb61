"""Options of training: `TrainConfig` for a trainer, `TrainRunConfig` for a run from records (``lita train``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field

from apexrl.configuration import configuration
from litaagent_std.hrl_xf.data_pipeline.options import DEFAULT_AGENT, Decisions, Labels

__all__ = [
    "FREE",
    "L2_OPTIONS",
    "PHASES",
    "RUN_FREE",
    "LrStage",
    "Phase",
    "QTransform",
    "TrainConfig",
    "TrainRunConfig",
    "stage_lr",
]

Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Phase = Literal["l2", "l3", "acceptance", "awr", "l4", "partner"]
QTransform = Literal["none", "log1p", "sqrt"]
LrStage = tuple[int, float]


def _lr_stage(text: str) -> str:
    """Check a learning-rate stage where options are read, before a run begins."""
    try:
        stage_lr(1.0, (text,), 1)
    except ValueError as error:
        raise ValueError("it should be EPOCH:RATE, such as 40:1e-4") from error
    return text


LrStages = tuple[Annotated[str, AfterValidator(_lr_stage)], ...]

PHASES: Final[tuple[Phase, ...]] = ("l2", "l3", "acceptance", "awr", "l4")
"""Phases of the four layers, in order. The phase ``partner`` is trained on its own data, after them if both are asked
for."""

FREE: Final = (
    "phases",
    "l2_epochs",
    "l3_epochs",
    "awr_epochs",
    "acceptance_epochs",
    "l4_epochs",
    "partner_epochs",
    "l2_lr",
    "l3_lr",
    "awr_lr",
    "l2_batch_size",
    "l3_batch_size",
    "l4_batch_size",
    "l2_backfill_batch_size",
    "backfill_world_chunk",
    "output_dir",
    "device",
    "l2_backfill_device",
    "l3_pre_tensorize",
    "tensorize_workers",
    "dataloader_workers",
    "dataloader_pin_memory",
    "dataloader_persistent_workers",
    "dataloader_prefetch_factor",
    "batch_log_every",
    "save_every",
    "patience",
    "l2_bc_resume_path",
    "l3_bc_resume_path",
    "l3_awr_resume_path",
)
"""Options that may change when a run is resumed: more phases, more epochs, another learning rate or batch size; the
options of every start are in ``run.json``."""

L2_OPTIONS: Final = (
    "l2_epochs",
    "l2_batch_size",
    "l2_lr",
    "l2_lr_stages",
    "l2_objective",
    "l2_q_transform",
    "l2_q_weight",
    "cql_alpha",
    "cql_weight",
    "weight_decay",
    "max_grad_norm",
    "patience",
)
"""Options that L2 is trained with: its weights hold them, and the L2 of every fold is trained with the same."""


@configuration
class TrainConfig:
    """Training of the four layers from a dataset.

    A learning rate holds for a whole phase, or changes after given epochs by stages, such as ``40:1e-4 50:5e-5``.
    Alternatively, start the same run again with more epochs and another rate.
    """

    output_dir: Path | None = None
    """Folder of weights, checkpoints, metrics and the record. Default: training_runs/hrl_xf; of a command, the newest
    unfinished run of the same options under training_runs, or else a new one."""

    horizon: Count = 40
    """Largest horizon (delivery days after today) of the networks that `lita train` builds; it must be at least that of
    the records. A trainer in Python takes the networks that it is given."""

    seed: Whole = 0
    """Seed of the batch order, of folds and of networks that the trainer builds itself."""

    device: str = "cpu"
    """Device, such as cpu or cuda; the CPU if there is no CUDA."""

    phases: tuple[Phase, ...] = PHASES
    """Phases to train, always in the order l2, l3, acceptance, awr, l4, partner. The last one, the types of partners,
    learns from all factories of the records and is trained only if it is named."""

    l2_epochs: Whole = 20
    """Epochs of L2 in total, including those before a resume."""
    l2_batch_size: Count = 512
    """Rows per step of L2; a row is a day of a factory."""
    l2_lr: Rate = 1e-3
    """Learning rate of L2."""
    l2_lr_stages: LrStages = ()
    """Later learning rates of L2: EPOCH:RATE, valid after that epoch."""
    l2_objective: Literal["bc", "cql"] = "bc"
    """Clone the recorded goals, or prefer those that a conservative critic of the returns values."""
    l2_q_transform: QTransform = "none"
    """Scale on which errors of quantities are squared. log1p and sqrt give small goals more weight."""
    l2_q_weight: Weight = 1.0
    """Weight of quantities beside prices. Raising it fits quantities better, at the expense of prices."""
    cql_alpha: Weight = 1.0
    """How conservative the critic is. Raising it values goals outside the records less."""
    cql_weight: Weight = 0.1
    """Weight of the critic's value beside cloning. Raising it departs further from the recorded goals."""

    l2_backfill_device: str = "cpu"
    """Device on which the goals of L3 are computed."""
    l2_backfill_batch_size: Count = 1024
    """Rows per batch of the backfill."""
    backfill_world_chunk: Count = 256
    """Worlds per chunk of the backfill; a killed one loses at most a chunk."""
    backfill_folds: Annotated[int, Field(ge=2)] = 4
    """Folds of the training configurations; the goals of a fold come from an L2 trained on the others."""

    l3_epochs: Whole = 10
    """Epochs of L3 in total, including those before a resume."""
    l3_batch_size: Count = 512
    """Decisions per step of L3 and of the acceptance model."""
    l3_lr: Rate = 1e-3
    """Learning rate of L3."""
    l3_lr_stages: LrStages = ()
    """Later learning rates of L3, as for L2."""
    l3_mode: Literal["residual", "direct"] = "residual"
    """Predict a residual on L1's baseline, or the action itself (`aop`)."""
    l3_ensemble: Count = 1
    """Ensemble members for quantity and price, each trained on its own two thirds; several measure uncertainty."""
    l3_bounds_weight: Weight = 1.0
    """Weight of the penalty for leaving the legal range before clipping."""
    l3_variance_weight: Weight = 0.1
    """Weight of the penalty for disagreement inside the ensemble; needs more than one member."""

    acceptance_epochs: Whole = 6
    """Epochs of the acceptance model."""
    acceptance_lr: Rate = 1e-3
    """Learning rate of the acceptance model."""

    awr_epochs: Whole = 5
    """Epochs of advantage-weighted regression, starting from the cloned L3."""
    awr_lr: Rate = 2e-4
    """Learning rate of advantage-weighted regression."""
    awr_temperature: Rate = 1.0
    """β. Raising it makes the weights more equal, up to plain cloning."""
    awr_max_weight: Rate = 20.0
    """Largest weight of a decision before weights are scaled to mean 1."""
    critic_epochs: Count = 5
    """Epochs of the critic of each fold."""

    l4_epochs: Whole = 10
    """Epochs of the distillation of L4."""
    l4_lr: Rate = 2e-3
    """Learning rate of L4."""
    l4_batch_size: Count = 256
    """Rounds per step of L4."""
    l4_max_rounds: Count = 60_000
    """Maximal number of rounds to distil from."""

    partner_epochs: Whole = 12
    """Epochs of the network that names types of partners."""
    partner_lr: Rate = 3e-3
    """Its first learning rate, which falls linearly over the epochs."""
    partner_batch_size: Count = 1024
    """Snapshots per step."""
    partner_hidden: Count = 64
    """Width of its hidden layer."""
    partner_early: Rate = 5.0
    """Days after which a snapshot has half the weight of one of the first day. Raising it weighs days more equally."""
    partner_balance: Share = 0.5
    """How far types are balanced: 0 weighs each snapshot alike, 1 each type alike."""

    weight_decay: Weight = 1e-4
    """Weight decay of AdamW. Raising it fits the records less closely."""
    max_grad_norm: Rate = 1.0
    """Maximal norm of the gradient; larger ones are scaled down."""
    save_every: Count = 1
    """Epochs between checkpoints; the last epoch is always saved."""
    patience: Whole = 0
    """Stop a phase after this many epochs without a better validation loss; 0 never stops early."""

    l3_pre_tensorize: bool = False
    """Copy the decisions into memory before training, instead of reading them from disk batch by batch."""
    tensorize_workers: Count = 2
    """Threads that copy them."""
    dataloader_workers: Whole = 0
    """Processes that prepare batches; 0 uses the main process. The weights do not depend on it."""
    dataloader_pin_memory: bool = False
    """Keep prepared batches in page-locked memory, for CUDA."""
    dataloader_persistent_workers: Literal[True, False] = False
    """Keep these processes from epoch to epoch."""
    dataloader_prefetch_factor: Count = 2
    """Batches that each process prepares in advance."""
    batch_log_every: Whole = 0
    """Log the loss every this many batches; 0 logs epochs only."""

    l2_bc_resume_path: Path | None = None
    """Checkpoint of L2 to resume from, instead of the newest of the folder."""
    l3_bc_resume_path: Path | None = None
    """Checkpoint of L3 to resume from, likewise."""
    l3_awr_resume_path: Path | None = None
    """Checkpoint of advantage-weighted regression to resume from, likewise."""


def stage_lr(first: float, stages: tuple[str, ...], epoch: int) -> float:
    """Return the learning rate of an epoch, counted from 1.

    Raises:
        ValueError: If a stage is not ``EPOCH:RATE``.
    """
    rate, since = first, 0
    for stage in stages:
        after, _, value = stage.partition(":")
        try:
            start, stage_rate = int(after), float(value)
        except ValueError as error:
            raise ValueError(f"learning-rate stage {stage!r} is not EPOCH:RATE; write, for example, 40:1e-4") from error
        if epoch > start >= since:
            rate, since = stage_rate, start
    return rate


RUN_FREE: Final = (*FREE, "num_workers", "log_dir", "eval_max_rows")
"""Options that may change when a run is resumed, those of ``lita train`` included."""


@configuration
class TrainRunConfig(TrainConfig):
    """Train the four layers from records of tournaments.

    Builds the dataset, trains the phases, measures every network beside trivial baselines and linear models, and
    exports weights for play. To resume a run that was stopped, run the same command again.
    """

    data_dir: Path = Path("tournament_history")
    """Records to learn from: a tournament's folder, or one that holds several."""

    dataset_dir: Path | None = None
    """Folder of the dataset. Default: one under data_dir, named after its digest."""

    agent_name: str = DEFAULT_AGENT
    """Agents to imitate: prefix of their class names; the empty string selects every factory."""

    labels: Labels = "intention"
    """L2's goals from intentions (first proposals, within needs) or from the day's deals."""

    decisions: Decisions = "taken"
    """L3's labels: the decisions that were taken, or those that the recorded reasons name (of a teacher)."""

    split_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the assignment of configurations to train, val and test."""

    split_ratios: tuple[float, float, float] = (0.85, 0.10, 0.05)
    """Shares of configurations in train, val and test."""

    num_workers: Annotated[int, Field(ge=0)] = 0
    """Worlds to parse at once; 0 is as many as there are CPUs."""

    l2_path: Path | None = None
    """Weights of L2 (l2_bc.pt) for phases after it. Default: those of the run's own folder."""

    l3_path: Path | None = None
    """Weights of L3 (l3_bc.pt) for awr alone. Default: those of the run's own folder."""

    log_dir: Path = Path("diagnose_logs")
    """Folder of logs, one file for each start."""

    eval_max_rows: Annotated[int, Field(ge=1)] = 100_000
    """Maximal number of decisions to evaluate on in each split."""
