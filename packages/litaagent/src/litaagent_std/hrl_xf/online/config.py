"""Options of ``lita train-online``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from apexrl.configuration import configuration
from apexrl.execution import EXECUTION_FIELDS, ExecutionOptions
from litaagent_std.hrl_xf.rewards import DayWeights, ThreadWeights
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = [
    "FREE_FIELDS",
    "EvolutionConfig",
    "GateConfig",
    "Layer",
    "LayerConfig",
    "MonitorConfig",
    "OnlineConfig",
    "PoolConfig",
    "SurfaceConfig",
]

Layer = Literal["l2", "l3", "l4"]
"""A layer that learns."""
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]

FREE_FIELDS = ("updates", *EXECUTION_FIELDS, "lockstep", "quiet", "output_dir", "checkpoint_every")
"""Options that may change when a run is resumed."""


@configuration
class LayerConfig:
    """Learning options of one layer."""

    outputs: tuple[str, ...] = ()
    """For L2 alone: components of its residual that are learned, such as sell_price_today; all if empty. The others
    stay as they are. Fewer outputs need fewer worlds."""
    learning_rate: Positive = 3e-4
    """Adam's step size."""
    dim: Annotated[int, Field(ge=2, multiple_of=2)] | None = None
    """Width of a new network. Default: as in lita train; with --warm a network keeps its own."""
    critic_hidden: tuple[Annotated[int, Field(ge=1)], ...] = (64, 64)
    """Widths of the critic's hidden layers."""
    log_std: float = -1.0
    """Initial logarithm of the exploration's standard deviation; 0 is one step of a residual."""
    log_std_range: tuple[float, float] = (-3.0, 0.5)
    """Bounds of the logarithm of the standard deviation."""
    epochs: Annotated[int, Field(ge=1)] = 4
    """Passes over each batch."""
    minibatch: Annotated[int, Field(ge=1)] = 256
    """Rows per gradient step at most."""
    clip: Positive = 0.2
    """Clipping range ε of PPO."""
    target_kl: Positive = 0.02
    """An update stops early when a minibatch's KL divergence from the version that acted is larger."""
    entropy: NonNegative = 0.0
    """Weight of the entropy bonus. Raising it keeps the policy more random."""
    warm_kl: Positive = 0.5
    """Target KL divergence from the warm start; beyond it the weight of the penalty grows with every update."""
    gae_lambda: Annotated[float, Field(ge=0.0, le=1.0)] = 0.95
    """λ of the generalised advantages. Raising it relies less on the critic."""


@configuration
class EvolutionConfig:
    """Options of evolution strategies."""

    pairs: Annotated[int, Field(ge=1)] = 8
    """Antithetic pairs per update. Raising it gives a better gradient estimate for more worlds."""
    sigma: Annotated[float, Field(gt=0.0)] = 0.3
    """Standard deviation of the perturbations, in steps of L2's residual."""
    learning_rate: Annotated[float, Field(gt=0.0)] = 0.05
    """Adam's step size, in the same units."""
    decay: Annotated[float, Field(ge=0.0)] = 0.005
    """Decay towards the warm start per update."""
    inputs: tuple[str, ...] = ("buys", "sells", "progress")
    """Inputs whose weights are learned beside the biases; buys and sells tell the level of the chain."""
    outputs: tuple[str, ...] = ()
    """Components of L2's residual that are learned, all if empty. Fewer of them need fewer worlds."""


@configuration
class SurfaceConfig:
    """Options of the response surface."""

    pairs: Count = 2
    """Antithetic pairs per world, each with a direction of its own."""
    sigma: Positive = 0.35
    """Standard deviation of the perturbations, in steps of L2's residual."""
    reach: Positive = 1.0
    """Largest distance of an output from the heuristic agent, in the same units."""
    inputs: tuple[str, ...] = ()
    """Inputs that the outputs depend on beside the level, such as progress; for one of --places at a time."""
    outputs: tuple[str, ...] = ()
    """Components of L2's residual that are learned, all if empty."""


@configuration
class PoolConfig:
    """Opponents in training."""

    competitors: tuple[str, ...] = ("RandomStd", "GreedyStd", "finalists-2024", "finalists-2025")
    """Competitors to train against: names, groups or class paths, as in lita arena."""
    held_out: tuple[str, ...] = ("finalists-2026",)
    """Competitors that only the gate plays against."""
    slots: Annotated[int, Field(ge=0)] = 1
    """Seats of other competitors in a world."""
    nobody: Annotated[float, Field(ge=0.0, le=1.0)] = 0.6
    """Share of slots that stay empty; such worlds are the fastest."""
    past_selves: Annotated[int, Field(ge=0)] = 3
    """Past versions of the policy that are kept as opponents; 0 for none."""
    hardness: Annotated[float, Field(ge=0.0)] = 1.0
    """Raising it draws opponents with a low win rate more often; 0 draws all with equal probability."""
    forgetting: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.02
    """Decay of an opponent's win record per game."""


@configuration
class MonitorConfig:
    """Roll-back to the best version, and early stopping."""

    window: Count = 10
    """Updates per window. Raising it makes comparisons more certain and later."""
    errors: Annotated[float, Field(gt=0.0)] = 3.0
    """Standard errors by which a window must be worse than the best one for a roll-back."""
    breach_rate: Annotated[float, Field(gt=0.0)] = 0.05
    """Rise of the share of undelivered units above the best window's that causes a roll-back."""
    bankruptcies: Annotated[float, Field(gt=0.0)] = 0.1
    """The same for the share of seats that went bankrupt."""
    overstock: Annotated[float, Field(gt=0.0)] = 0.2
    """The same for the share of days with more than three days of production in stock."""
    patience: Count = 60
    """Updates without a better window after which training stops."""


@configuration
class GateConfig:
    """Evaluation of a candidate against the best."""

    every: Annotated[int, Field(ge=0)] = 20
    """Updates between two candidates; 0 for no gate."""
    worlds: Count = 200
    """Worlds per candidate at most; new seeds for each."""
    days: tuple[Count, ...] = (50, 100)
    """Lengths of the gate's worlds."""
    lead: float = 0.0
    """The candidate must be better by more than this."""


@configuration
class OnlineConfig(ExecutionOptions):
    """Train the agent's layers in the league: play a quota of worlds under one version, update, repeat.

    The networks are those of lita train: new ones, which play as the heuristic agent, or those of --warm. The same
    command resumes a run that was stopped.
    """

    method: Literal["ppo", "es", "surface"] = "ppo"
    """ppo: PPO for L2 and MAPPO for L3 and L4. es: evolution strategies on L2, without credit assignment. surface: a
    quadratic through all worlds so far, over shifts of L2's residuals by level of the chain; for small budgets."""

    layers: tuple[Layer, ...] = ("l2",)
    """Layers that learn; with l3 or l4 every round is a decision, which about doubles the time."""

    critic: Literal["central", "local"] = "central"
    """Critic of the rounds: central sees the whole factory (MAPPO), local the thread alone (independent PPO)."""

    updates: Count = 200
    """Updates of the run."""

    worlds: Count = 16
    """Worlds per update: the quota under one version."""

    lockstep: Count = 32
    """Worlds that a worker plays at once, at most; all seats that wait are decided as one batch. Raising it saves time
    and costs memory; results do not depend on it."""

    days: tuple[Count, ...] = (50, 100)
    """Lengths of the worlds in days, drawn with equal probability."""

    levels: Annotated[int, Field(ge=2)] | None = None
    """Production levels. Default: drawn from the official range, 2 to 4."""

    seats: Count = 1
    """Our seats per world. More seats give more samples per world, but worlds with more copies of us."""

    places: Annotated[tuple[Level, ...], Field(min_length=1)] = LEVELS
    """Levels of the chain to learn for; at the others the heuristic agent plays."""

    control_variate: bool = True
    """Play each world with the reference policy too, and learn from the difference."""

    day_rewards: DayWeights = DayWeights()
    """Weights of a day's reward terms."""

    thread_rewards: ThreadWeights = ThreadWeights()
    """Weights of a thread's reward terms."""

    l2: LayerConfig = LayerConfig(learning_rate=3e-4)
    """Learning options of L2."""

    l3: LayerConfig = LayerConfig(learning_rate=1e-4, log_std=-1.5, minibatch=1024)
    """Learning options of L3: slower than L2, to preserve its bargaining."""

    l4: LayerConfig = LayerConfig(learning_rate=5e-4, log_std=-1.5, minibatch=1024)
    """Learning options of L4: faster than L2."""

    evolution: EvolutionConfig = EvolutionConfig()
    """Options of --method es."""

    surface: SurfaceConfig = SurfaceConfig()
    """Options of --method surface."""

    pool: PoolConfig = PoolConfig()
    """Opponents."""

    monitor: MonitorConfig = MonitorConfig()
    """Roll-back and early stopping."""

    gate: GateConfig = GateConfig()
    """Evaluation of a candidate against the best."""

    self_every: Annotated[int, Field(ge=0)] = 25
    """Updates between two past versions that join the opponents; 0 for none."""

    warm: Path | None = None
    """Weights to start from: the folder of a run of lita train or of this command, or its weights. Default: new
    networks."""

    seed: Annotated[int, Field(ge=0, lt=1 << 20)] = 0
    """Seed of the run: worlds, exploration, networks, opponents."""

    output_dir: Path = Path("online_runs/default")
    """Folder of the run."""

    checkpoint_every: Count = 5
    """Updates between two checkpoints."""

    time_limit: Annotated[float, Field(gt=0)] = 1800.0
    """Seconds that a world may take before it is played again."""

    quiet: bool = False
    """Show no progress."""

    def layer(self, layer: Layer) -> LayerConfig:
        """Return the learning options of a layer."""
        return {"l2": self.l2, "l3": self.l3, "l4": self.l4}[layer]
