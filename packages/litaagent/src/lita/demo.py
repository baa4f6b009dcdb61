"""``lita demo``: the main job end to end at a small scale, which is what ``make run`` does."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.console import Console

_CHAMPIONS = ("PenguinAgent", "AS0", "HorizonAwareAgent")
"""Winners of 2024, 2025 and 2026: the other competitors of the tournament."""
_OURS = "litaagent_std.agents.hrl.LitaAgentHRL"
_CHECKED_DAYS = 20


@configuration
class Config:
    """Run the main job end to end at a small scale.

    A recorded tournament of our agent and three champions; a world on scml's own engine too, to show that both give
    the same scores; a policy trained with PPO, evaluated before and after; and a report with the ranking, a world, a
    negotiation, our agent's reasons and the learning curve. It takes a few minutes on two cores. The same command
    resumes a stopped run.
    """

    configs: Annotated[int, Field(ge=1)] = 2
    """Configurations to draw; each is played four times, so that every competitor plays every seat once."""
    days: Annotated[int, Field(ge=10, le=200)] = 50
    """Days per world."""
    steps: Annotated[int, Field(ge=1)] = 40_000
    """Environment steps of the training."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the worlds and of the training."""
    output_dir: Path = Path("runs/demo")
    """Folder of the tournament, the training and the report."""


def run(config: Config) -> int:
    """Play the tournament, compare the engines, train a policy and write the report."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    restart_with_fixed_hashing()  # worlds run in this process
    from rich.console import Console

    console = Console()
    status = _play(config)
    if status:
        return status
    _compare_engines(config, console)
    _train(config, console)
    _report(config, console)
    return 0


def _play(config: Config) -> int:
    """Play a tournament of our agent and three champions, and show its standings; return the exit status."""
    from lita.tournament import play
    from litaagent_std.tournament.config import TournamentConfig

    print(
        f"A tournament of our agent and the champions of three years: {4 * config.configs} worlds of {config.days} days"
    )
    tournament = TournamentConfig(
        competitors=(_OURS, *_champions()),
        configs=config.configs,
        runs=1,
        steps=config.days,
        seed=config.seed,
        csv=False,
        reasons=True,
        quiet=True,
        output_dir=config.output_dir / "tournament",
    )
    status = play(tournament, prefix="demo")
    print("So few worlds are noise: lita arena compares agents in many paired worlds.")
    return status


def _champions() -> list[str]:
    from litaagent_std.tournament.competitors.registry import all_paths

    return [path for path in all_paths() if path.rsplit(".", 1)[1] in _CHAMPIONS]


def _compare_engines(config: Config, console: Console) -> None:
    """Run a short world on both engines, and print whether their scores are equal."""
    from litaagent_std import official_setup, run_world

    days = min(config.days, _CHECKED_DAYS)
    setup = official_setup(config.seed, [_OURS, *_champions()], n_days=days, n_competitors=4)
    spent, scores = [], []
    with console.status("running a world on the fast engine, then on scml's own"):
        for options in ({}, {"engine": "scml"}):
            start = time.process_time()
            scores.append(run_world(setup, **options).scores)  # type: ignore[arg-type]  # a name of an engine
            spent.append(time.process_time() - start)
    same = "the same" if scores[0] == scores[1] else "OTHER"
    console.print(f"scml's own engine gives {same} scores, in {spent[1] / spent[0]:.1f} x the CPU time.")


def _train(config: Config, console: Console) -> None:
    """Train PPO on CartPole, and show its return before and after."""
    from functools import partial

    import gymnasium

    from apexrl import GymVecEnv, OnPolicyRunner, PPOConfig

    folder = config.output_dir / "training"
    env = GymVecEnv([partial(gymnasium.make, "CartPole-v1")] * 8)
    cfg = PPOConfig(num_steps=32, minibatch_size=256, num_epochs=20, learning_rate=1e-3, gamma=0.98, seed=config.seed)
    runner = OnPolicyRunner(env=env, cfg=cfg, log_dir=folder, save_interval=40)
    before = runner.eval(20)["eval/mean_reward"]
    if runner.resume():
        console.print(f"an earlier training in {folder} is resumed at step {runner.total_timesteps}")
    if runner.total_timesteps < config.steps:
        runner.learn(total_timesteps=config.steps)
    after = runner.eval(20)["eval/mean_reward"]
    checkpoint = runner.save_checkpoint("final_model.pt")
    runner.close()
    console.print(f"PPO on CartPole-v1: mean return {before:.0f} before, {after:.0f} after {config.steps} steps.")
    console.print(f"The checkpoint is {checkpoint}; curves: tensorboard --logdir {folder}", soft_wrap=True)


def _report(config: Config, console: Console) -> None:
    """Write the report of the tournament and the training, and print its address."""
    try:
        from litaagent_std.dashboard.report import make_report, pages_of
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package {error.name!r} is missing",
            "the report needs the extra `dashboard`",
            "pip install litaagent[dashboard]",
        ) from error
    pages = pages_of(config.output_dir / "tournament", agent=_OURS.rsplit(".", 1)[1])
    pages += pages_of(config.output_dir / "training")
    [path] = make_report(pages, config.output_dir / "report.html", title="A first look", figures=False)
    console.print(f"\nLook at {path.resolve().as_uri()}", soft_wrap=True)
    console.print(
        "It shows the ranking, a world, a negotiation to replay, our agent's reasons, and the learning curve."
    )
    console.print(f"With filters and all worlds: lita serve {config.output_dir}", soft_wrap=True)
