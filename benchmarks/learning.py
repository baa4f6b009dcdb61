"""What ``apexrl`` learns beside Stable-Baselines3 on the same budget, and MAPPO beside independent PPO.

Ten seeds each (five of the memory task, where sb3-contrib's RecurrentPPO is the peer), the same hyperparameters on both
sides, evaluated on seeded environments of their own with the most probable actions. Returns are summed up as
interquartile means with 95 % bootstrap intervals over seeds. The curves go to ``docs/images/bench_learning.png``.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from apexrl.agent.multi_agent_runner import MultiAgentRunner
from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.mappo import MAPPOConfig
from apexrl.algorithms.ppo import PPOConfig
from apexrl.charts import Curve, Panels, learning_curves, save_figure
from apexrl.envs.gymnasium.ids import make_env
from apexrl.envs.gymnasium.wrapper import GymVecEnv
from apexrl.envs.pettingzoo.wrapper import PettingZooVecEnv
from apexrl.models import GRUCritic, GRUDiscreteActor
from apexrl.runs.atomic import ensure_folder
from apexrl.statistics import bootstrap_estimates, interquartile_mean
from benchmarks.harness import Benchmark, Figure

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "bench_learning.png"
EVALUATIONS = 10
EPISODES = 20
NUM_ENVS = 8

GYM: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"steps": 100_352, "num_steps": 256, "minibatch_size": 64, "num_epochs": 10, "learning_rate": 3e-4}
    | {"gamma": 0.99, "gae_lambda": 0.95},
    "Acrobot-v1": {"steps": 102_400, "num_steps": 256, "minibatch_size": 64, "num_epochs": 4, "learning_rate": 3e-4}
    | {"gamma": 0.99, "gae_lambda": 0.94},
    "Pendulum-v1": {"steps": 102_400, "num_steps": 256, "minibatch_size": 64, "num_epochs": 10, "learning_rate": 1e-3}
    | {"gamma": 0.9, "gae_lambda": 0.95},
}
"""Budget and hyperparameters of each task, for both sides."""
MPE = {"simple_spread_v3": 122_880, "simple_reference_v3": 122_880}
"""Budget of each multi-agent task, in env steps."""
MEMORY: dict[str, dict[str, Any]] = {
    "apexrl/CueRecall-v0": {"steps": 40_320, "num_steps": 84, "minibatch_size": 336, "num_epochs": 8}
    | {"learning_rate": 3e-3, "gamma": 1.0, "gae_lambda": 1.0, "ent_coef": 0.01},
}
"""The memory task: a cue 20 steps back, so a rollout is four whole episodes of 21 steps."""
MEMORY_ENVS = 16
MEMORY_SEEDS = 5
MEMORY_WIDTH = 64
"""Width of the GRU here and of the LSTM there, and of the layer beside it."""
GYM_SIDES, MEMORY_SIDES, MPE_SIDES = ("apexrl", "sb3"), ("apexrl", "sb3-contrib"), ("mappo", "ippo")


def sides(task: str) -> tuple[str, str]:
    """Return who is compared on a task."""
    if task in MPE:
        return MPE_SIDES
    return MEMORY_SIDES if task in MEMORY else GYM_SIDES


def evaluation_points(steps: int, rollout: int) -> list[int]:
    """Return the iterations after which to evaluate, the last one included."""
    last = -(-steps // rollout)
    return sorted({max(1, round(last * part / EVALUATIONS)) for part in range(1, EVALUATIONS + 1)})


def train_with_runner(runner: OnPolicyRunner, points: list[int], seed: int) -> dict[str, list[float]]:
    """Train up to each point and evaluate there."""
    curve: dict[str, list[float]] = {"steps": [], "returns": []}
    for point in points:
        runner.learn(num_iterations=point - runner.iteration)
        curve["steps"].append(runner.total_timesteps)
        curve["returns"].append(runner.eval(EPISODES, seed=10_000 + seed)["eval/mean_reward"])
    runner.close()
    return curve


def train_apexrl(task: str, steps: int, seed: int) -> dict[str, list[float]]:
    """Return the learning curve of apexrl's PPO."""
    setting = {key: value for key, value in GYM[task].items() if key != "steps"}
    cfg = PPOConfig(seed=seed, **setting)
    env = GymVecEnv([partial(gymnasium.make, task)] * NUM_ENVS)
    network = {"hidden_dims": [64, 64], "activation": "tanh"}
    options = {"save_interval": 0, "log_interval": 0, "show_progress": False}
    runner = OnPolicyRunner(env=env, cfg=cfg, actor_cfg=network, critic_cfg=network, **options)
    return train_with_runner(runner, evaluation_points(steps, cfg.num_steps * NUM_ENVS), seed)


def train_sb3(task: str, steps: int, seed: int) -> dict[str, list[float]]:
    """Return the learning curve of Stable-Baselines3's PPO."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    setting = GYM[task]
    model = PPO(
        "MlpPolicy",
        DummyVecEnv([partial(gymnasium.make, task)] * NUM_ENVS),
        n_steps=setting["num_steps"],
        batch_size=setting["minibatch_size"],
        n_epochs=setting["num_epochs"],
        learning_rate=setting["learning_rate"],
        gamma=setting["gamma"],
        gae_lambda=setting["gae_lambda"],
        policy_kwargs={"net_arch": [64, 64]},
        seed=seed,
        device="cpu",
    )
    test = DummyVecEnv([partial(gymnasium.make, task)] * NUM_ENVS)
    return train_with_sb3(model, test, evaluation_points(steps, setting["num_steps"] * NUM_ENVS), seed)


def train_with_sb3(model: Any, test: Any, points: list[int], seed: int) -> dict[str, list[float]]:  # noqa: ANN401 - SB3's
    """Train up to each point and evaluate there."""
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecMonitor

    test = VecMonitor(test)
    curve: dict[str, list[float]] = {"steps": [], "returns": []}
    rollout = model.n_steps * model.n_envs
    for point in points:
        model.learn(total_timesteps=point * rollout - model.num_timesteps, reset_num_timesteps=False)
        test.seed(10_000 + seed)
        curve["steps"].append(model.num_timesteps)
        curve["returns"].append(float(evaluate_policy(model, test, n_eval_episodes=EPISODES)[0]))
    return curve


def train_memory(task: str, side: str, steps: int, seed: int) -> dict[str, list[float]]:
    """Return the learning curve of recurrent PPO: a GRU here, sb3-contrib's LSTM of the same width there."""
    setting = {key: value for key, value in MEMORY[task].items() if key != "steps"}
    points = evaluation_points(steps, setting["num_steps"] * MEMORY_ENVS)
    if side == "apexrl":
        env = GymVecEnv.make(task, MEMORY_ENVS)
        cfg = PPOConfig(seed=seed, sequence_length=21, **setting)
        networks = {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic}
        width = {"hidden_dims": [MEMORY_WIDTH], "rnn_hidden_dim": MEMORY_WIDTH}
        options = {"save_interval": 0, "log_interval": 0, "show_progress": False}
        runner = OnPolicyRunner(env=env, cfg=cfg, actor_cfg=width, critic_cfg=width, **networks, **options)
        return train_with_runner(runner, points, seed)
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    model = RecurrentPPO(
        "MlpLstmPolicy",
        DummyVecEnv([partial(make_env, task)] * MEMORY_ENVS),
        n_steps=setting["num_steps"],
        batch_size=setting["minibatch_size"],
        n_epochs=setting["num_epochs"],
        learning_rate=setting["learning_rate"],
        gamma=setting["gamma"],
        gae_lambda=setting["gae_lambda"],
        ent_coef=setting["ent_coef"],
        policy_kwargs={"lstm_hidden_size": MEMORY_WIDTH, "net_arch": [MEMORY_WIDTH], "enable_critic_lstm": True},
        seed=seed,
        device="cpu",
    )
    return train_with_sb3(model, DummyVecEnv([partial(make_env, task)] * MEMORY_ENVS), points, seed)


def make_mpe(task: str) -> Any:  # noqa: ANN401 - PettingZoo brings no types
    """One of mpe2's parallel environments with 25 steps per episode."""
    import importlib

    return importlib.import_module(f"mpe2.{task}").parallel_env(max_cycles=25)


def train_mpe(task: str, side: str, steps: int, seed: int) -> dict[str, list[float]]:
    """Return the learning curve of MAPPO or of independent PPO.

    Independent learners have a policy each and a critic that sees what the agent sees. MAPPO's shared policy sees no
    agent ids: in these tasks an observation tells its agent's part, and whatever one agent learns holds for all.
    """
    central = side == "mappo"
    cfg = MAPPOConfig(
        seed=seed,
        num_steps=128,
        num_epochs=10,
        minibatch_size=128,
        learning_rate=7e-4,
        gamma=0.95,
        ent_coef=0.01,
        normalize_values=True,
        share_actor=central,
        add_agent_ids=False,
        centralized_critic=central,
    )
    env = PettingZooVecEnv([partial(make_mpe, task)] * NUM_ENVS)
    network = {"hidden_dims": [64, 64], "activation": "tanh"}
    options = {"save_interval": 0, "log_interval": 0, "show_progress": False}
    runner = MultiAgentRunner(env=env, cfg=cfg, actor_cfg=network, critic_cfg=network, **options)
    return train_with_runner(runner, evaluation_points(steps, cfg.num_steps * NUM_ENVS), seed)


def train(task: str, side: str, steps: int, seed: int) -> dict[str, list[float]]:
    """One learning curve: steps and mean evaluation returns."""
    torch.set_num_threads(1)
    if task in MPE:
        return train_mpe(task, side, steps, seed)
    if task in MEMORY:
        return train_memory(task, side, steps, seed)
    return train_apexrl(task, steps, seed) if side == "apexrl" else train_sb3(task, steps, seed)


def bootstrap(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Interquartile means of resamples over seeds."""
    return bootstrap_estimates(values, statistic=interquartile_mean, resamples=2_000)


def compare(task: str, ours: NDArray[np.float64], peer: NDArray[np.float64], names: tuple[str, str]) -> list[Figure]:
    """Figures of the last evaluation of each seed, ``[seeds]``, on one task."""
    figures = []
    for name, values in zip(names, (ours, peer), strict=True):
        low, high = np.quantile(bootstrap(values), (0.025, 0.975))
        note = f"95 % interval {low:.4g} to {high:.4g}, {len(values)} seeds"
        figures.append(
            Figure(name=f"{task}: {name}, interquartile mean return", value=interquartile_mean(values), note=note)
        )
    base, scale = interquartile_mean(peer), abs(interquartile_mean(peer))
    lead = (interquartile_mean(ours) - base) / scale
    low, high = np.quantile((bootstrap(ours) - bootstrap(peer)[::-1]) / scale, (0.025, 0.975))
    note = f"95 % interval {low:+.3f} to {high:+.3f}"
    goal, op = (0.0, ">") if names == MPE_SIDES else (-0.1, ">=")
    return [*figures, Figure(name=f"{task}: lead over {names[1]}, relative", value=lead, op=op, goal=goal, note=note)]


def draw(curves: dict[tuple[str, str], NDArray[np.float64]], steps: dict[str, list[float]]) -> None:
    """Save the picture of all curves: interquartile mean and the range of the middle half of seeds."""
    panels = []
    for task, task_steps in steps.items():
        lines = [
            Curve(
                name=side,
                x=task_steps,
                mean=[interquartile_mean(column) for column in values.T],
                low=np.quantile(values, 0.25, axis=0).tolist(),
                high=np.quantile(values, 0.75, axis=0).tolist(),
            )
            for (name, side), values in curves.items()
            if name == task
        ]
        panels.append(learning_curves(lines, name=task, title=task, y_title="mean return"))
    ensure_folder(PICTURE.parent)
    save_figure(Panels(name=PICTURE.stem, pictures=panels, columns=len(panels)), PICTURE.parent, ("png",))


def main() -> int:
    """Train every side on every task and seed, compare, draw."""
    bench = Benchmark("learning", __doc__ or "", seeds=range(10))
    shrink = 10 if bench.quick else 1
    budgets = {**{task: setting["steps"] for task, setting in (GYM | MEMORY).items()}, **MPE}
    seeds = {task: range(1 if bench.quick else MEMORY_SEEDS if task in MEMORY else 10) for task in budgets}
    keys = {
        f"{task}-{side}-{seed}": {"task": task, "side": side, "steps": budgets[task] // shrink, "seed": seed}
        for task in budgets
        for seed in seeds[task]
        for side in sides(task)
    }
    results = bench.units(train, keys)
    curves: dict[tuple[str, str], NDArray[np.float64]] = {}
    figures: list[Figure] = []
    for task in budgets:
        names = sides(task)
        for side in names:
            curves[task, side] = np.array([results[f"{task}-{side}-{seed}"]["returns"] for seed in seeds[task]])
        figures += compare(task, curves[task, names[0]][:, -1], curves[task, names[1]][:, -1], names)
    reached = float(curves["CartPole-v1", "apexrl"].max(axis=1).min())
    figures.append(Figure(name="CartPole-v1: best evaluation of the worst seed", value=reached, goal=475.0))
    if bench.quick:  # a tenth of the budget says nothing about goals
        figures = [Figure(name=figure.name, value=figure.value, note=figure.note) for figure in figures]
    else:
        draw(curves, {task: results[f"{task}-{sides(task)[0]}-0"]["steps"] for task in budgets})
    return bench.finish(figures)


if __name__ == "__main__":
    sys.exit(main())
