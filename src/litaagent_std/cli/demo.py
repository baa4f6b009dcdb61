"""``lita demo``: the main job end to end at a small scale, which is what ``make run`` does."""

import time
from collections import defaultdict
from pathlib import Path
from typing import Annotated

from pydantic import Field
from rich.console import Console
from rich.progress import track
from rich.table import Table

from apexrl.configuration import configuration

_CHAMPIONS = ("PenguinAgent", "AS0", "HorizonAwareAgent")
"""The winners of 2024, 2025 and 2026 that the demo seats beside ours."""
_OURS = "litaagent_std.hrl_xf.agent.LitaAgentHRL"


@configuration
class Config:
    """Run the main job end to end at a small scale.

    Official worlds on the fast engine, one of them again on scml's own to show that both tell the same story, then a
    policy trained with PPO, evaluated before and after. It takes a few minutes on two cores.
    """

    worlds: Annotated[int, Field(ge=1)] = 4
    """Official worlds to run. Raising it makes the ranking less noisy."""
    days: Annotated[int, Field(ge=10, le=200)] = 50
    """Days per world."""
    steps: Annotated[int, Field(ge=1)] = 40_000
    """Environment steps of the training."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the worlds and of the training."""
    output_dir: Path = Path("runs/demo")
    """Where the training leaves its checkpoints, metrics and TensorBoard events."""


def run(config: Config) -> int:
    """Show the league, then the engine."""
    from litaagent_std.market.world.hashing import restart_with_fixed_hashing

    restart_with_fixed_hashing()  # worlds run in this very process
    console = Console()
    play(config, console)
    train(config, console)
    return 0


def play(config: Config, console: Console) -> None:
    """Run official worlds with our agent and three champions, and one of them on scml's own engine too."""
    from litaagent_std.market.competitors import all_paths
    from litaagent_std.market.world.interface import run_world
    from litaagent_std.market.world.setup import official_setup

    champions = [path for path in all_paths() if path.rsplit(".", 1)[1] in _CHAMPIONS]
    seeds = [config.seed + index for index in range(config.worlds)]
    setups = [official_setup(seed, [_OURS, *champions], n_days=config.days, n_competitors=4) for seed in seeds]
    scores: dict[str, list[float]] = defaultdict(list)
    spent: list[float] = []
    outcomes = []
    for setup in track(setups, description="official worlds on the fast engine", console=console):
        start = time.process_time()
        outcomes.append(run_world(setup))
        spent.append(time.process_time() - start)
        for agent, score in zip(setup.agents, outcomes[-1].scores.values(), strict=True):
            scores[agent.path.rsplit(".", 1)[1]].append(score)
    table = Table("agent", "seats", "mean score", title=f"{config.worlds} official worlds of {config.days} days")
    for name, values in sorted(scores.items(), key=lambda item: -sum(item[1]) / len(item[1])):
        table.add_row(name, str(len(values)), f"{sum(values) / len(values):.3f}")
    console.print(table)
    console.print("Few worlds are noise: compare agents on many, paired ones.")

    with console.status("the first of them again, on scml's own engine"):
        start = time.process_time()
        reference = run_world(setups[0], engine="scml")
        ratio = (time.process_time() - start) / spent[0]
    same = reference.scores == outcomes[0].scores
    console.print(f"scml's own engine gives {'the same' if same else 'OTHER'} scores, in {ratio:.1f} x the CPU time.")


def train(config: Config, console: Console) -> None:
    """Train PPO on CartPole, and show its return before and after."""
    from functools import partial

    import gymnasium

    from apexrl.agent.on_policy_runner import OnPolicyRunner
    from apexrl.algorithms.ppo import PPOConfig
    from apexrl.envs.gym_wrapper import GymVecEnv

    env = GymVecEnv([partial(gymnasium.make, "CartPole-v1")] * 8)
    cfg = PPOConfig(num_steps=32, minibatch_size=256, num_epochs=20, learning_rate=1e-3, gamma=0.98, seed=config.seed)
    runner = OnPolicyRunner(env=env, cfg=cfg, log_dir=config.output_dir, save_interval=40)
    before = runner.eval(20)["eval/mean_reward"]
    if runner.resume():
        console.print(f"an earlier training in {config.output_dir} goes on at step {runner.total_timesteps}")
    if runner.total_timesteps < config.steps:
        runner.learn(total_timesteps=config.steps)
    after = runner.eval(20)["eval/mean_reward"]
    checkpoint = runner.save_checkpoint("final_model.pt")
    runner.close()
    console.print(f"PPO on CartPole-v1: mean return {before:.0f} before, {after:.0f} after {config.steps} steps.")
    console.print(f"The checkpoint is {checkpoint}; curves: tensorboard --logdir {config.output_dir}")
