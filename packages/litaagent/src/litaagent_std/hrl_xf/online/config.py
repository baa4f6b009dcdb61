"""What a training run is: the options of ``lita train-online``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from apexrl.configuration import configuration
from litaagent_std.agents.online.steering import Layer
from litaagent_std.hrl_xf.rewards import DayWeights, ThreadWeights
from litaagent_std.policy.parameters import LEVELS, Level

__all__ = [
    "FREE_FIELDS",
    "EvolutionConfig",
    "GateConfig",
    "LayerConfig",
    "MonitorConfig",
    "OnlineConfig",
    "PoolConfig",
    "SurfaceConfig",
]

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]

FREE_FIELDS = ("updates", "executor", "workers", "address", "time_limit", "quiet", "output_dir", "checkpoint_every")
"""Options that may change when a run goes on."""


@configuration
class LayerConfig:
    """How one layer learns."""

    outputs: tuple[str, ...] = ()
    """The layer's numbers that are learned, all when empty; the others stay 0. Fewer are found with fewer worlds."""
    learning_rate: Positive = 3e-4
    """Adam's step size."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (32,)
    """Widths of the policy's hidden layers; none makes it linear."""
    critic_hidden: tuple[Annotated[int, Field(ge=1)], ...] = (64, 64)
    """Widths of the critic's hidden layers."""
    log_std: float = -1.0
    """Logarithm of the exploration's deviation at the start; 0 is a third of an action's range."""
    log_std_range: tuple[float, float] = (-3.0, 0.5)
    """Between these the exploration may move."""
    epochs: Annotated[int, Field(ge=1)] = 4
    """Passes over each batch."""
    minibatch: Annotated[int, Field(ge=1)] = 256
    """The most rows per gradient step."""
    clip: Positive = 0.2
    """ε of the policy's clipping."""
    target_kl: Positive = 0.02
    """An update ends when a minibatch shows a larger divergence from the version that acted."""
    entropy: NonNegative = 0.0
    """Weight of the entropy bonus. Raising it keeps the policy more random."""
    warm_kl: Positive = 0.5
    """Divergence from the warm start to aim at; beyond it the pull back grows from update to update."""
    gae_lambda: Annotated[float, Field(ge=0.0, le=1.0)] = 0.95
    """Raising it trusts the critic less."""


@configuration
class EvolutionConfig:
    """How evolution strategies search."""

    pairs: Annotated[int, Field(ge=1)] = 8
    """Antithetic pairs per update. Raising it gives a better direction for more worlds."""
    sigma: Annotated[float, Field(gt=0.0)] = 0.3
    """Deviation of the perturbations, in units of L2's numbers."""
    learning_rate: Annotated[float, Field(gt=0.0)] = 0.05
    """Adam's step size, in the same units."""
    decay: Annotated[float, Field(ge=0.0)] = 0.005
    """Pull back to the warm start per update."""
    inputs: tuple[str, ...] = ("level_first", "level_middle", "level_last", "progress")
    """Inputs whose weights are moved beside the biases."""
    outputs: tuple[str, ...] = ()
    """Numbers of L2 that are moved, all when empty. Fewer are found with fewer worlds."""


@configuration
class SurfaceConfig:
    """How a response surface is explored."""

    pairs: Count = 2
    """Antithetic pairs per world, each with a direction of its own."""
    sigma: Positive = 0.35
    """Deviation of the perturbations, in units of L2's numbers."""
    reach: Positive = 1.0
    """How far from the heuristic agent a number may go, in the same units."""
    inputs: tuple[str, ...] = ()
    """Inputs that the numbers follow beside the place, such as progress; for one of --places at a time."""
    outputs: tuple[str, ...] = ()
    """Numbers of L2 that are moved, all when empty."""


@configuration
class PoolConfig:
    """Opponents of the training."""

    competitors: tuple[str, ...] = ("RandomStd", "GreedyStd", "finalists-2024", "finalists-2025")
    """Who may sit in the other competitors' seats: names, groups or class paths, as in lita arena."""
    held_out: tuple[str, ...] = ("finalists-2026",)
    """Who is met at the gate alone."""
    slots: Annotated[int, Field(ge=0)] = 1
    """Seats of other competitors in a world."""
    nobody: Annotated[float, Field(ge=0.0, le=1.0)] = 0.6
    """Share of slots that stay empty: such worlds are the quickest."""
    past_selves: Annotated[int, Field(ge=0)] = 3
    """How many past selves are kept; 0 for none."""
    hardness: Annotated[float, Field(ge=0.0)] = 1.0
    """Raising it draws hard opponents more often; 0 draws all alike."""
    forgetting: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.02
    """Share of what is known of an opponent that is forgotten with every game."""


@configuration
class MonitorConfig:
    """When training goes back to the last good version, and when it stops."""

    window: Count = 10
    """Updates that are judged together. Raising it judges more surely and later."""
    errors: Annotated[float, Field(gt=0.0)] = 3.0
    """Standard errors by which a window must be worse than the best one to go back."""
    breach_rate: Annotated[float, Field(gt=0.0)] = 0.05
    """Rise of the share of undelivered units, above the best window's, at which to go back."""
    bankruptcies: Annotated[float, Field(gt=0.0)] = 0.1
    """The same for the share of seats that went bankrupt."""
    overstock: Annotated[float, Field(gt=0.0)] = 0.2
    """The same for the share of days with more than three days of production in stock."""
    patience: Count = 60
    """Updates without a better window after which training stops."""


@configuration
class GateConfig:
    """When a candidate becomes the best."""

    every: Annotated[int, Field(ge=0)] = 20
    """Updates between two candidates; 0 never asks."""
    worlds: Count = 200
    """Worlds per candidate at most; fresh seeds for each."""
    days: tuple[Count, ...] = (50, 100)
    """Lengths of the gate's worlds."""
    lead: float = 0.0
    """The candidate must be better by more than this."""


@configuration
class OnlineConfig:
    """Train the agent's layers in the league: play a quota of worlds under one version, update, and again.

    The warm start is the heuristic agent, or --warm. The same command goes on with a run that was stopped.
    """

    method: Literal["ppo", "es", "surface"] = "ppo"
    """ppo: PPO for L2 and MAPPO for L3 and L4. es: evolution strategies on L2, without credit assignment. surface: a
    quadratic through all worlds so far, over constants of L2 by place in the chain; for small budgets."""

    layers: tuple[Layer, ...] = ("l2",)
    """Which layers learn; l3 and l4 make every round a decision, which costs about twice the time."""

    critic: Literal["central", "local"] = "central"
    """Critic of the rounds: central sees the whole factory (MAPPO), local the thread alone (independent PPO)."""

    updates: Count = 200
    """Updates of the whole run."""

    worlds: Count = 16
    """Worlds per update: the quota under one version."""

    days: tuple[Count, ...] = (50, 100)
    """Lengths of the worlds, drawn with equal probability."""

    levels: Annotated[int, Field(ge=2)] | None = None
    """Production levels. Default: drawn from the official range, 2 to 4."""

    seats: Count = 1
    """Our seats per world. More give more samples per world, from worlds with more of us in them."""

    places: Annotated[tuple[Level, ...], Field(min_length=1)] = LEVELS
    """Places in the chain to learn for; at the others the heuristic agent plays."""

    control_variate: bool = True
    """Play each world by the reference policy too, and learn from the difference alone."""

    day_rewards: DayWeights = DayWeights()
    """Weights of a day's terms."""

    thread_rewards: ThreadWeights = ThreadWeights()
    """Weights of a thread's terms."""

    l2: LayerConfig = LayerConfig(learning_rate=3e-4)
    """How L2 learns."""

    l3: LayerConfig = LayerConfig(learning_rate=1e-4, log_std=-1.5, minibatch=1024)
    """How L3 learns: slower than L2, to keep what it knows of bargaining."""

    l4: LayerConfig = LayerConfig(learning_rate=5e-4, log_std=-1.5, minibatch=1024)
    """How L4 learns: faster than L2."""

    evolution: EvolutionConfig = EvolutionConfig()
    """Options of --method es."""

    surface: SurfaceConfig = SurfaceConfig()
    """Options of --method surface."""

    pool: PoolConfig = PoolConfig()
    """Opponents."""

    monitor: MonitorConfig = MonitorConfig()
    """Roll-back and early stopping."""

    gate: GateConfig = GateConfig()
    """When a candidate becomes the best."""

    self_every: Annotated[int, Field(ge=0)] = 25
    """Updates between two past selves that join the opponents; 0 for none."""

    warm: Path | None = None
    """Weights to start from, as this command writes them."""

    seed: Annotated[int, Field(ge=0, lt=1 << 20)] = 0
    """Seed of the run: worlds, exploration, networks, opponents."""

    output_dir: Path = Path("online_runs/default")
    """Folder of the run."""

    checkpoint_every: Count = 5
    """Updates between two checkpoints."""

    executor: Literal["inline", "processes", "ray"] = "processes"
    """How worlds are played: one after the other here, in processes, or on a Ray cluster."""

    workers: Count | None = None
    """Worlds at once. Default: one per available CPU."""

    address: str | None = None
    """The Ray cluster, such as auto or ray://host:10001."""

    time_limit: Annotated[float, Field(gt=0)] = 1800.0
    """Seconds that a world may take before it is played again."""

    quiet: bool = False
    """Show no progress."""

    def layer(self, layer: Layer) -> LayerConfig:
        """How a layer learns."""
        return {"l2": self.l2, "l3": self.l3, "l4": self.l4}[layer]
