"""Training speed of ``apexrl`` beside Stable-Baselines3 and rsl_rl: env steps per CPU second.

Every comparison happens in one run on one thread: same environments, network, rollout, minibatches and epochs, five
interleaved repeats, and the figure is the median of the ratios of neighbours.
"""

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import gymnasium
import torch
from rich.progress import track

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.ppo import PPOConfig
from apexrl.envs.gymnasium.wrapper import GymVecEnv
from apexrl.models import MLPActor, MLPCritic, MLPDiscreteActor
from benchmarks.batched_pendulum import ApexPendulum, rsl_pendulum
from benchmarks.harness import Benchmark, Figure

NUM_ENVS = 8
HIDDEN = [64, 64]
SMALL = {"num_steps": 256, "minibatch_size": 64, "num_epochs": 10}
"""For eight environments: what Stable-Baselines3 does by default, with its 2,048 samples per rollout."""
WIDE = {"num_steps": 24, "num_minibatches": 4, "num_epochs": 5}
"""For 1,024 environments: what rsl_rl does by default."""
WIDE_ENVS = 1024


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of this process while ``work`` runs."""
    start = time.process_time()
    with redirect_stdout(StringIO()):
        work()
    return time.process_time() - start


def apexrl_small(env_id: str, steps: int, seed: int) -> float:
    """Env steps per CPU second of apexrl on eight Gymnasium environments."""
    actor = MLPDiscreteActor if env_id.startswith("CartPole") else MLPActor
    env = GymVecEnv([lambda: gymnasium.make(env_id)] * NUM_ENVS)
    cfg = PPOConfig(seed=seed, **SMALL)
    network = {"hidden_dims": HIDDEN, "activation": "tanh"}
    runner = OnPolicyRunner(
        env=env,
        actor_class=actor,
        critic_class=MLPCritic,
        actor_cfg=network,
        critic_cfg=network,
        cfg=cfg,
        save_interval=0,
        show_progress=False,
    )
    return steps / cpu_seconds(lambda: runner.learn(total_timesteps=steps))


def sb3_small(env_id: str, steps: int, seed: int) -> float:
    """Env steps per CPU second of Stable-Baselines3 on the same."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = DummyVecEnv([lambda: gymnasium.make(env_id)] * NUM_ENVS)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=SMALL["num_steps"],
        batch_size=SMALL["minibatch_size"],
        n_epochs=SMALL["num_epochs"],
        policy_kwargs={"net_arch": HIDDEN},
        seed=seed,
        device="cpu",
    )
    return steps / cpu_seconds(lambda: model.learn(total_timesteps=steps))


def apexrl_wide(steps: int, seed: int) -> float:
    """Env steps per CPU second of apexrl on 1,024 natively batched pendulums."""
    rollout = WIDE["num_steps"] * WIDE_ENVS
    cfg = PPOConfig(
        seed=seed,
        num_steps=WIDE["num_steps"],
        num_epochs=WIDE["num_epochs"],
        minibatch_size=rollout // WIDE["num_minibatches"],
        clip_range_vf=0.2,
        vf_coef=1.0,
        ent_coef=0.01,
        learning_rate=1e-3,
        schedule="adaptive",
        max_grad_norm=1.0,
    )
    network = {"hidden_dims": HIDDEN, "activation": "elu"}
    runner = OnPolicyRunner(
        env=ApexPendulum(WIDE_ENVS),
        actor_class=MLPActor,
        critic_class=MLPCritic,
        actor_cfg=network,
        critic_cfg=network,
        cfg=cfg,
        save_interval=0,
        show_progress=False,
    )
    iterations = steps // rollout
    return iterations * rollout / cpu_seconds(lambda: runner.learn(num_iterations=iterations))


def rsl_wide(steps: int, seed: int) -> float:
    """Env steps per CPU second of rsl_rl on the same."""
    from rsl_rl.runners import OnPolicyRunner as RslRunner

    torch.manual_seed(seed)
    network = {"class_name": "MLPModel", "hidden_dims": HIDDEN, "activation": "elu"}
    cfg: dict[str, Any] = {
        "num_steps_per_env": WIDE["num_steps"],
        "save_interval": 10**9,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}},
        "critic": dict(network),
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": WIDE["num_epochs"],
            "num_mini_batches": WIDE["num_minibatches"],
        },
    }
    rollout = WIDE["num_steps"] * WIDE_ENVS
    iterations = steps // rollout
    with redirect_stdout(StringIO()):
        runner = RslRunner(rsl_pendulum(WIDE_ENVS), cfg, device="cpu")
    return iterations * rollout / cpu_seconds(lambda: runner.learn(iterations))


def measure(task: str, steps: int, seed: int) -> dict[str, float]:
    """One pair of neighbours: ours and the peer's, in turn first."""
    if task == "wide":
        pair = [lambda: ("ours", apexrl_wide(steps, seed)), lambda: ("peer", rsl_wide(steps, seed))]
    else:
        pair = [lambda: ("ours", apexrl_small(task, steps, seed)), lambda: ("peer", sb3_small(task, steps, seed))]
    return dict(side() for side in (pair if seed % 2 else pair[::-1]))


def main() -> int:
    """Run the three comparisons."""
    torch.set_num_threads(1)
    bench = Benchmark("engine", __doc__ or "", seeds=range(5))
    repeats = 2 if bench.quick else 5
    steps = 8_192 if bench.quick else 32_768
    wide_steps = (10 if bench.quick else 40) * WIDE["num_steps"] * WIDE_ENVS
    tasks = [
        ("CartPole-v1", steps, "SB3", 2.8),
        ("Pendulum-v1", steps, "SB3", 2.8),
        ("wide", wide_steps, "rsl_rl", 1.2),
    ]
    runs: dict[str, list[dict[str, float]]] = {task[0]: [] for task in tasks}
    for seed in track(range(repeats), description="repeats", disable=not sys.stdout.isatty()):
        for task, count, _, _ in tasks:
            runs[task].append(bench.unit(f"{task}-{seed}", measure, task=task, steps=count, seed=seed))
    figures = []
    for task, _, peer, goal in tasks:
        label = f"batched pendulum x {WIDE_ENVS}" if task == "wide" else f"{task} x {NUM_ENVS}"
        ratios = [run["ours"] / run["peer"] for run in runs[task]]
        spread = f"{min(ratios):.2f}–{max(ratios):.2f} over {repeats} repeats"
        figures.append(
            Figure(name=f"{label}: ratio to {peer}", value=statistics.median(ratios), unit="x", goal=goal, note=spread)
        )
        for side, who in (("ours", "apexrl"), ("peer", peer)):
            speed = statistics.median(run[side] for run in runs[task])
            figures.append(Figure(name=f"{label}: {who}", value=speed, unit="steps/CPU s"))
    return bench.finish(figures)


if __name__ == "__main__":
    sys.exit(main())
