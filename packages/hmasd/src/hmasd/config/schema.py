"""The configuration of a training run: one flat class, so that ``config_1.py`` can set any field by its name."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError

Real = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number."""
Algorithm = Literal["hmasd", "mappo", "mat"]
Ablation = Literal["none", "no_team", "no_indi", "no_high", "no_ex_rew", "no_in_rew"]

_COORDINATOR_SETTINGS: Final = ("warmup_steps", "skill_floor", "advantage_floor")
"""What only a coordinator that learns uses."""
_HMASD_SETTINGS: Final = (
    *_COORDINATOR_SETTINGS,
    "lambda_coverage",
    "critic_sees",
    "adaptive_lambda",
    "discriminator_decay",
    "discriminator_lipschitz",
)
"""What only HMASD uses; ``center_rewards`` is missing because presets that baselines are trained with set it."""


@configuration
class HMASDConfig:
    """Train HMASD or a baseline, strictly synchronously: collect one batch with one policy version, then update.

    Equations (Yang et al., NeurIPS 2023), with k = ``skill_steps``:

    * high level: r^h = Σ_{p<k} γ^{p/k}·r_{t+p};  L_h = PPO(Z) + Σ_i PPO(z_i) − λ_h·(H[Z] + Σ_i H[z_i])
    * low level: r^i = λ_e·r + λ_D·log q_D(Z|s') + λ_d·log q_d(z_i|o'_i, Z) − λ_c·log N(o'_i), where N counts visits in
      the batch and λ_c is 0 in the paper;  L_l = (1/n)·Σ_i [PPO(a_i) − λ_l·H[a_i]]
    * discriminators: L_d = −log q_D(Z|s') − (1/n)·Σ_i log q_d(z_i|o'_i, Z)
    """

    # task and algorithm
    task: str = "alice_and_bob"
    """``alice_and_bob``, ``alice_and_bob_crossed``, ``cramped_room`` or ``coordination_ring`` (Overcooked, each also
    with ``_old_dynamics``), ``uav_coverage``, ``uav_relay``, or ``pettingzoo:MODULE`` (with ``parallel_env``)."""
    algorithm: Algorithm = "hmasd"
    """``hmasd``, or a baseline: ``mappo`` (recurrent, central critic), ``mat`` (joint transformer)."""
    ablation: Ablation = "none"
    """Remove a part of HMASD: the team skill (``no_team``), individual skills (``no_indi``), the learned coordinator
    (``no_high``), the low level's team reward (``no_ex_rew``) or its discriminator rewards (``no_in_rew``)."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of networks, environments and sampling."""
    total_steps: int = Field(default=4_000_000, ge=1)
    """Environment steps of the whole run; a step counts once, whatever the number of agents."""
    n_agents: int | None = Field(default=None, ge=1)
    """Number of UAVs in the UAV tasks; default: the task's own number."""
    max_episode_steps: int = Field(default=100, ge=1)
    """Time limit of an episode; reaching it truncates, so values bootstrap there."""
    reward_shaping: Real = Field(default=0.0, ge=0.0)
    """Overcooked: weight of the package's shaped rewards (onion in a pot 3, useful dish 3, soup taken 5) in training.
    Evaluation counts soups only."""
    device: str = "auto"
    """Where networks and batches are: ``auto`` (a GPU if torch finds one), ``cpu``, ``cuda`` or ``cuda:1``.
    Environments run on the CPU."""

    # batch
    num_envs: int = Field(default=32, ge=1)
    """Environments that step together; 32 in the paper."""
    batch_size: int = Field(default=1024, ge=1)
    """Environment steps of one update; a multiple of ``num_envs``. Larger batches give fewer and less noisy updates."""

    # skills
    n_team_skills: int = Field(default=3, ge=1)
    """n_Z, number of team skills."""
    n_agent_skills: int = Field(default=3, ge=1)
    """n_z, number of individual skills."""
    skill_steps: int = Field(default=10, ge=1)
    """k, environment steps that a skill lasts, unless its episode ends first; it lasts beyond the batch if need be."""
    lambda_e: Real = Field(default=1.0, ge=0.0)
    """λ_e, weight of the team reward at the low level."""
    lambda_team: Real = Field(default=0.1, ge=0.0)
    """λ_D, weight of the team discriminator's reward."""
    lambda_agent: Real = Field(default=0.5, ge=0.0)
    """λ_d, weight of the individual discriminators' reward."""
    lambda_coverage: Real = Field(default=0.0, ge=0.0)
    """λ_c, weight of −log(visits of the observation in the batch) at the low level, which spreads agents over the
    state space; 0 in the paper."""
    entropy_high: Real = Field(default=0.001, ge=0.0)
    """λ_h, entropy bonus of the coordinator; a larger one keeps all skills in use for longer."""
    entropy_low: Real = Field(default=0.01, ge=0.0)
    """λ_l, entropy bonus of the discoverer."""

    freeze_skills: bool = False
    """Train the coordinator only and leave discoverer and discriminators as they are, for skills of another run
    (``--skills-from``)."""
    skills_digest: str | None = None
    """SHA-256 of the checkpoint that frozen skills come from. ``--skills-from`` sets it, so that a run with the skills
    of another checkpoint is another run; default: not checked."""

    # networks
    hidden_size: int = Field(default=64, ge=1)
    """Width of all networks."""
    transformer_blocks: int = Field(default=1, ge=1)
    """Encoder and decoder blocks of the coordinator and of MAT."""
    critic_sees: Literal["team_skill", "all_skills"] = "team_skill"
    """``team_skill``: V_l(s, Z) as in the paper, one value for all agents; ``all_skills``: V_l(s, Z, z_1…z_n), one
    value per agent, whose reward depends on its own skill."""

    # PPO
    lr: Real = Field(default=1e-4, gt=0.0)
    """Learning rate of both levels."""
    lr_discriminator: Real = Field(default=1e-4, gt=0.0)
    """Learning rate of the discriminators."""
    gamma: Real = Field(default=0.99, ge=0.0, le=1.0)
    """γ: per environment step at the low level, per full interval of k steps at the high level."""
    gae_lambda: Real = Field(default=0.95, ge=0.0, le=1.0)
    """λ of generalised advantage estimation."""
    clip_range: Real = Field(default=0.2, gt=0.0)
    """ε of PPO, for policy ratios and for values in normalised units."""
    ppo_epochs: int = Field(default=15, ge=1)
    """Epochs over the batch in an update."""
    num_minibatches: int = Field(default=1, ge=1)
    """Minibatches of an epoch at the low level, in MAPPO (sequences) and in MAT (environment steps); the coordinator
    and the discriminators take all samples at once. More minibatches give more and noisier gradient steps."""
    discriminator_epochs: int = Field(default=15, ge=1)
    """Epochs of the discriminators over the batch."""
    value_coef: Real = Field(default=1.0, ge=0.0)
    """Weight of value losses."""
    huber_delta: Real = Field(default=10.0, gt=0.0)
    """δ of the Huber value loss."""
    max_grad_norm: Real = Field(default=10.0, gt=0.0)
    """Largest norm of gradients; larger ones are scaled down."""
    sequence_length: int = Field(default=10, ge=1)
    """Steps that gradients flow back through the GRU; memories at the start of a sequence are the stored ones."""

    # reliability, all off in the paper
    center_rewards: bool = False
    """HMASD only: add log n_Z and log n_z to the discriminators' log-probabilities, so that the reward at chance level
    is 0. The baselines ignore it, because the presets of the UAV tasks set it."""
    warmup_steps: int = Field(default=0, ge=0)
    """Environment steps at the start in which skills are uniform and the coordinator is not updated."""
    skill_floor: Real = Field(default=0.0, ge=0.0, le=1.0)
    """Probability mass of the coordinator that is spread uniformly over all skills, so that all stay in use."""
    advantage_floor: Real = Field(default=1e-8, gt=0.0)
    """Added to the standard deviation that the coordinator's advantages are divided by, in units of reward. A larger
    one keeps batches without any reward, whose advantages are noise of V_h, from changing the coordinator."""
    restart_steps: int = Field(default=0, ge=0)
    """Restart with new networks after this many environment steps in a row without a rewarded episode; 0 never.
    Skills converge early, and if they converged away from the reward they stay there. An episode counts as rewarded if
    its return is positive, so a task whose returns are never positive would restart for ever."""
    adaptive_lambda: bool = False
    """Scale λ_D and λ_d by 1 − discriminator accuracy above chance, so that perfect discrimination has no reward."""
    discriminator_decay: Real = Field(default=0.0, ge=0.0)
    """Weight decay of the discriminators; smooth discriminators reward skills that are further apart."""
    discriminator_lipschitz: Real = Field(default=0.0, ge=0.0)
    """Largest change of the discriminators' logits per unit of distance between observations; 0 does not limit it.
    Limited discriminators recognise skills the better the further apart they lead."""

    # evaluation and checkpoints
    eval_interval: int = Field(default=160_000, ge=1)
    """Environment steps between evaluations."""
    eval_episodes: int = Field(default=32, ge=1)
    """Episodes of one evaluation, on separate environments."""
    eval_deterministic: bool = False
    """Evaluate the most probable skills and actions instead of sampling them."""
    checkpoint_interval: int = Field(default=320_000, ge=1)
    """Environment steps between checkpoints."""
    keep_checkpoints: int | None = Field(default=None, ge=1)
    """Number of newest checkpoints kept beside the final one; null keeps all."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.batch_size % self.num_envs:
            lower = self.batch_size - self.batch_size % self.num_envs or self.num_envs
            raise ConfigurationError(
                f"batch_size={self.batch_size} is not a multiple of num_envs={self.num_envs}: each environment gives "
                f"batch_size / num_envs steps; use batch_size={lower} or {lower + self.num_envs}"
            )
        if self.freeze_skills and (self.algorithm != "hmasd" or self.ablation == "no_high"):
            raise ConfigurationError(
                f"freeze_skills=True trains the coordinator only, which algorithm={self.algorithm!r} with "
                f"ablation={self.ablation!r} does not have or does not train; use algorithm='hmasd', or "
                "freeze_skills=False"
            )
        if self.ablation != "none" and self.algorithm != "hmasd":
            raise ConfigurationError(
                f"ablation={self.ablation!r} removes a part of HMASD, but algorithm={self.algorithm!r}; "
                "use algorithm='hmasd' or ablation='none'"
            )
        if self.skills_digest is not None and not self.freeze_skills:
            raise ConfigurationError(
                f"skills_digest={self.skills_digest!r} names the checkpoint of frozen skills, but freeze_skills=False; "
                "leave it out, because --skills-from sets both"
            )
        self._check_unused()
        return self

    def _check_unused(self) -> None:
        """Refuse settings that would do nothing."""
        names = unused_settings(self.algorithm, self.ablation)
        if not names:
            return
        defaults = HMASDConfig()
        given = [name for name in names if getattr(self, name) != getattr(defaults, name)]
        if given:
            chosen, other = f"algorithm={self.algorithm!r}", "algorithm='hmasd'"
            if self.algorithm == "hmasd":
                chosen, other = f"ablation={self.ablation!r}", "another ablation"
            values = ", ".join(f"{name}={getattr(self, name)!r}" for name in given)
            without = ", ".join(f"{name}={getattr(defaults, name)!r}" for name in given)
            raise ConfigurationError(
                f"{values}: {chosen} uses none of these settings; leave them out, give the defaults where a file sets "
                f"them ({without}), or use {other}"
            )

    @property
    def rollout_steps(self) -> int:
        """T, steps of each environment in a batch."""
        return self.batch_size // self.num_envs

    @property
    def team_skills(self) -> int:
        """n_Z after ablation."""
        return 1 if self.ablation == "no_team" else self.n_team_skills

    @property
    def agent_skills(self) -> int:
        """n_z after ablation."""
        return 1 if self.ablation == "no_indi" else self.n_agent_skills

    @property
    def gamma_per_step(self) -> float:
        """The high level's discount of one environment step: k of them make γ."""
        return float(self.gamma ** (1.0 / self.skill_steps))


def unused_settings(algorithm: str, ablation: str) -> tuple[str, ...]:
    """Return the names of settings that an algorithm or an ablation does not use; only their defaults are valid."""
    if algorithm != "hmasd":
        return _HMASD_SETTINGS
    return _COORDINATOR_SETTINGS if ablation == "no_high" else ()
