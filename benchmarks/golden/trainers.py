"""A tiny run of every trainer: final weights as digests."""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.golden.fingerprints import Fingerprint, Row, report, tensors_digest
from benchmarks.golden.worlds import made_layers
from litaagent_std.world.reproducible.silence import silence


def apexrl_on_policy(folder: Path) -> dict[str, Row]:
    """Train PPO on CartPole and Pendulum, feed-forward and recurrent."""
    import gymnasium as gym

    from apexrl.agent.on_policy_runner import OnPolicyRunner
    from apexrl.algorithms.ppo import PPOConfig
    from apexrl.envs.gymnasium.wrapper import GymVecEnv
    from apexrl.models import GRUCritic, GRUDiscreteActor

    fields: dict[str, Any] = {"num_steps": 16, "minibatch_size": 32, "num_epochs": 2}
    every = {"normalize_observations": True, "normalize_values": True, "schedule": "adaptive"}
    losses = {"schedule": "linear", "ent_coef": 0.01, "clip_range_vf": 0.2, "huber_delta": 1.0, "target_kl": 0.05}
    gru = {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic}
    variants: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
        "ppo": ("CartPole-v1", {}, {}),
        "ppo_normalised": ("CartPole-v1", every, {}),
        "ppo_losses": ("CartPole-v1", losses | {"seed": 3}, {}),
        "ppo_continuous": ("Pendulum-v1", every, {}),
        "ppo_recurrent": ("CartPole-v1", every | {"sequence_length": 4}, gru),
    }
    rows_by_label = {}
    for name, (task, changes, networks) in variants.items():
        env = GymVecEnv([partial(gym.make, task)] * 4)
        cfg = PPOConfig(**(fields | changes))
        runner = OnPolicyRunner(env, cfg=cfg, **networks, save_interval=0, show_progress=False)
        runner.learn(num_iterations=12)
        played = runner.eval(3)
        rows_by_label[f"apexrl/{name}"] = tensors_digest(runner.agent.policy.state_dict()) | numbers(played)
    return rows_by_label


def apexrl_multi_agent(folder: Path) -> dict[str, Row]:
    """Train MAPPO on a task of PettingZoo, in its variants."""
    from mpe2 import simple_spread_v3

    from apexrl.agent.multi_agent_runner import MultiAgentRunner
    from apexrl.algorithms.mappo import MAPPOConfig
    from apexrl.envs.pettingzoo.wrapper import PettingZooVecEnv

    fields: dict[str, Any] = {"num_steps": 16, "minibatch_size": 16, "num_epochs": 2, "learning_rate": 3e-3}
    variants: dict[str, dict[str, Any]] = {
        "mappo": {},
        "mappo_separate": {"share_actor": False},
        "mappo_local": {"centralized_critic": False, "add_agent_ids": False},
        "mappo_team": {"team_reward": True, "value_per_agent": False},
        "mappo_normalised": {"normalize_observations": True, "normalize_values": True, "schedule": "adaptive"},
    }
    rows_by_label = {}
    for name, changes in variants.items():
        env = PettingZooVecEnv([lambda: simple_spread_v3.parallel_env(N=2, max_cycles=10)] * 2)
        runner = MultiAgentRunner(env, cfg=MAPPOConfig(**(fields | changes)), save_interval=0, show_progress=False)
        runner.learn(num_iterations=6)
        rows_by_label[f"apexrl/{name}"] = tensors_digest(runner.agent.policy.state_dict())
    return rows_by_label


def apexrl_offline(folder: Path) -> dict[str, Row]:
    """Train BC and AWR on a recorded demonstration."""
    import gymnasium as gym
    import torch

    from apexrl.agent.offline_runner import OfflineRunner
    from apexrl.algorithms.awr import AWRConfig
    from apexrl.algorithms.bc import BCConfig
    from apexrl.envs.gymnasium.wrapper import GymVecEnv
    from apexrl.storage.offline import OfflineDataset

    env = GymVecEnv([lambda: gym.make("CartPole-v1")])
    obs, _ = env.reset(seed=0)
    rows = []
    for _ in range(400):
        action = (obs[:, 2] + obs[:, 3] > 0).long()
        after, reward, done, _ = env.step(action)
        rows.append((obs[0], action[0], reward[0], done[0]))
        obs = after
    obs, actions, rewards, dones = (torch.stack(column) for column in zip(*rows, strict=True))
    data = OfflineDataset.from_trajectory(obs, actions, rewards, dones, gamma=0.99)
    train, held_out = data.split(0.2, seed=0)
    rows_by_label = {}
    for name, algorithm, cfg in (
        ("bc", "bc", BCConfig(learning_rate=1e-2, minibatch_size=64)),
        ("bc_normalised", "bc", BCConfig(minibatch_size=32, normalize_observations=True)),
        ("awr", "awr", AWRConfig(minibatch_size=64)),
        ("awr_cold", "awr", AWRConfig(minibatch_size=64, temperature=0.2)),
    ):
        spaces = (env.observation_space, env.action_space)
        runner = OfflineRunner(
            train, *spaces, algorithm=algorithm, cfg=cfg, validation=held_out, save_interval=0, show_progress=False
        )
        runner.learn(num_iterations=8)
        rows_by_label[f"apexrl/{name}"] = tensors_digest(runner.agent.policy.state_dict())
    return rows_by_label


def hmasd_runs(folder: Path) -> dict[str, Row]:
    """Train HMASD, its ablations and options, and its baselines for a few thousand steps."""
    from hmasd.config import HMASDConfig
    from hmasd.training.trainer import train

    fields: dict[str, Any] = {
        "task": "alice_and_bob",
        "num_envs": 8,
        "batch_size": 8 * 46,
        "max_episode_steps": 19,
        "skill_steps": 4,
        "hidden_size": 16,
        "ppo_epochs": 2,
        "discriminator_epochs": 2,
        "sequence_length": 5,
        "total_steps": 8 * 46 * 6,
        "eval_interval": 8 * 46 * 3,
        "eval_episodes": 4,
        "checkpoint_interval": 10**9,
        "lr": 1e-2,
        "lr_discriminator": 1e-2,
    }
    options = {"warmup_steps": 800, "skill_floor": 0.05, "adaptive_lambda": True, "discriminator_decay": 0.01}
    variants: dict[str, dict[str, Any]] = {
        "hmasd": {},
        "hmasd_uav": {"task": "uav_coverage", "n_agents": 3, "num_minibatches": 2, "center_rewards": True},
        "hmasd_relay": {"task": "uav_relay", "n_agents": 3, "eval_deterministic": True},
        "hmasd_options": options | {"critic_sees": "all_skills", "advantage_floor": 0.1, "restart_steps": 800},
        "hmasd_no_team": {"ablation": "no_team"},
        "hmasd_no_high": {"ablation": "no_high"},
        "mappo": {"algorithm": "mappo"},
        "mappo_uav": {"algorithm": "mappo", "task": "uav_coverage", "n_agents": 3},
        "mat": {"algorithm": "mat"},
        "mat_uav": {"algorithm": "mat", "task": "uav_coverage", "n_agents": 3, "num_minibatches": 2},
    }
    rows_by_label = {}
    for name, changes in variants.items():
        trainer = train(HMASDConfig(**(fields | changes)))
        played = trainer.last_evaluation
        returns = {} if played is None else {"returns": [float(value).hex() for value in played.returns]}
        rows_by_label[f"hmasd/{name}"] = tensors_digest(flat_tensors(trainer.agent.state_dict())) | returns
    return rows_by_label


def offline_training(folder: Path) -> dict[str, Row]:
    """Record a tiny tournament, build its dataset, and train every phase on it; then the conservative variant."""
    import torch

    from litaagent_std.hrl_x.linear import TrainConfig as LinearConfig
    from litaagent_std.hrl_x.training import load_model, save_model, train_l2_bc, train_l3_bc
    from litaagent_std.hrl_xf.data_pipeline import load_tournament_data
    from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
    from litaagent_std.hrl_xf.training.config import TrainRunConfig
    from litaagent_std.hrl_xf.training.launch import train
    from litaagent_std.tournament.config import TournamentConfig
    from litaagent_std.tournament.run import run_tournament

    records = folder / "records"
    run_tournament(
        TournamentConfig(
            competitors=("GreedyStd", "RandomStd"),
            configs=4,
            runs=1,
            steps=6,
            levels=2,
            executor="inline",
            quiet=True,
            csv=False,
            output_dir=records,
        )
    )
    fields: dict[str, Any] = {
        "data_dir": records,
        "dataset_dir": folder / "dataset",
        "log_dir": folder / "logs",
        "agent_name": "Greedy",
        "split_ratios": (0.5, 0.25, 0.25),
        "num_workers": 1,
        "horizon": 12,
        "l2_epochs": 2,
        "l2_batch_size": 16,
        "l3_epochs": 1,
        "l3_batch_size": 256,
        "awr_epochs": 1,
        "critic_epochs": 1,
        "acceptance_epochs": 1,
        "l4_epochs": 2,
        "backfill_folds": 2,
        "eval_max_rows": 300,
    }
    variants: dict[str, dict[str, Any]] = {
        "phases": {},
        "cql": {"phases": ("l2",), "l2_objective": "cql", "l2_q_transform": "sqrt", "l2_epochs": 3},
        "ensemble": {
            "phases": ("l2", "l3", "awr"),
            "l2_q_transform": "log1p",
            "l3_ensemble": 2,
            "l3_mode": "direct",
            "l3_pre_tensorize": True,
            "seed": 5,
        },
        "partner": {"phases": ("partner",), "partner_epochs": 3, "partner_batch_size": 64, "partner_hidden": 8},
    }
    rows_by_label: dict[str, Row] = {}
    for name, changes in variants.items():
        run = folder / "runs" / name
        train(TrainRunConfig(**(fields | changes), output_dir=run))
        for stem in ("l2_bc", "l3_bc", "acceptance", "l3_awr", "l4_distill", "partner"):
            if (run / f"{stem}.pt").exists():
                content = torch.load(run / f"{stem}.pt", weights_only=True)
                rows_by_label[f"offline/{name}/{stem}"] = tensors_digest(content["model"])
        for file in sorted((run / "weights").glob("*.npz")):
            rows_by_label[f"offline/{name}/play/{file.stem}"] = tensors_digest(npz_arrays(file))
    data = OfflineData.open(folder / "dataset")
    for part in ("macro", "micro"):
        table = getattr(data, part)
        rows_by_label[f"offline/dataset/{part}"] = tensors_digest({column: table[column] for column in table.keys()})  # noqa: SIM118 - no mapping
    macro, micro = load_tournament_data(records, agent_name="Greedy")
    config = LinearConfig(lr=2e-2, epochs=3, batch_size=64)
    for name, model in (("l2", train_l2_bc(macro, config)), ("l3", train_l3_bc(micro, config))):
        file = save_model(model, folder / f"linear_{name}.npz")
        load_model(file)
        rows_by_label[f"linear/{name}"] = tensors_digest(npz_arrays(file))
    return rows_by_label


def online_training(folder: Path) -> dict[str, Row]:
    """Train online by every method."""
    from litaagent_std.hrl_xf.online.command import run_training
    from litaagent_std.hrl_xf.online.config import (
        EvolutionConfig,
        GateConfig,
        LayerConfig,
        OnlineConfig,
        PoolConfig,
        SurfaceConfig,
    )

    small = LayerConfig(dim=8, critic_hidden=(8,))
    nobody = PoolConfig(slots=0, held_out=())
    somebody = PoolConfig(competitors=("RandomStd", "GreedyStd"), held_out=(), slots=1, nobody=0.2, past_selves=2)
    fields: dict[str, Any] = {
        "layers": ("l2", "l3", "l4"),
        "updates": 3,
        "worlds": 2,
        "days": (6,),
        "levels": 2,
        "l2": small,
        "l3": small,
        "l4": small,
        "pool": nobody,
        "gate": GateConfig(every=0),
        "self_every": 0,
        "executor": "inline",
        "quiet": True,
    }
    three = {"levels": 3, "places": ("middle",)}
    variants: dict[str, dict[str, Any]] = {
        "ppo_l2": {"layers": ("l2",)},
        "mappo": {},
        "independent": {"critic": "local", "control_variate": False, "seed": 2},
        "opponents": {"pool": somebody, "self_every": 1, "seats": 2, "days": (5, 7)},
        "warm": {"warm": made_layers(folder)},
        "evolution": {"method": "es", "evolution": EvolutionConfig(pairs=2)},
        "surface": {"method": "surface", "surface": SurfaceConfig(pairs=2)},
        "surface_inputs": {"method": "surface", "surface": SurfaceConfig(pairs=1, inputs=("progress",)), **three},
    }
    rows_by_label = {}
    for name, changes in variants.items():
        target = folder / "online" / name
        trainer, _ = run_training(OnlineConfig(**(fields | changes), output_dir=target))
        [*_, newest] = sorted((target / "weights").glob("v*"))
        state = flat_tensors(trainer.method.state_dict())
        arrays = {f"{file.stem}/{key}": one for file in newest.glob("*.npz") for key, one in npz_arrays(file).items()}
        played = {"play": tensors_digest(arrays)["weights"], "worlds": trainer.worlds}
        rows_by_label[f"online/{name}"] = tensors_digest(state) | played
    return rows_by_label


def distillations(folder: Path) -> dict[str, Row]:
    """Distil networks of all layers, and L2 alone."""
    from litaagent_std.hrl_xf.online.config import PoolConfig
    from litaagent_std.hrl_xf.online.distillation.config import DistillConfig
    from litaagent_std.hrl_xf.online.distillation.run import run_distillation

    fields: dict[str, Any] = {
        "teacher": made_layers(folder),
        "worlds": 3,
        "held_out": 1,
        "days": (5,),
        "levels": 2,
        "epochs": 5,
        "pool": PoolConfig(slots=0, held_out=()),
        "executor": "inline",
        "quiet": True,
    }
    variants: dict[str, dict[str, Any]] = {"all": {"dim": 4}, "days": {"dim": 2, "layers": ("l2",)}}
    rows_by_label = {}
    for name, changes in variants.items():
        distilled = run_distillation(DistillConfig(**(fields | changes), output_dir=folder / "distilled" / name))
        report = {part: (distilled.report or {})[part] for part in ("error", "agreement", "score")}
        files = sorted(distilled.path.glob("*.npz"))
        arrays = {f"{file.stem}/{key}": one for file in files for key, one in npz_arrays(file).items()}
        rows_by_label[f"distillation/{name}"] = tensors_digest(arrays) | numbers(report)
    return rows_by_label


def tuning(folder: Path) -> dict[str, Row]:
    """Tune two parameters for a generation."""
    from litaagent_std.arena.tuning.config import TuneConfig
    from litaagent_std.arena.tuning.run import run_tuning

    config = TuneConfig(
        levels=("middle",),
        names=("hold", "sell_curve"),
        worlds=1,
        generations=2,
        population=4,
        days=(8,),
        validation_worlds=2,
        gate_worlds=2,
        opponents=("built-in",),
        executor="inline",
        quiet=True,
        output_dir=folder / "tuning",
    )
    run_tuning(config)
    lines = [json.loads(line) for line in (folder / "tuning" / "middle.jsonl").read_text().splitlines()]
    return {"tuning/search": numbers(lines)}


TRAINERS: Final[dict[str, Callable[[Path], dict[str, Row]]]] = {
    "apexrl_on_policy": apexrl_on_policy,
    "apexrl_multi_agent": apexrl_multi_agent,
    "apexrl_offline": apexrl_offline,
    "hmasd": hmasd_runs,
    "offline": offline_training,
    "online": online_training,
    "distillation": distillations,
    "tuning": tuning,
}


def numbers(values: object) -> Row:
    """Fingerprint all numbers in nested plain values, by their paths; CPU times and texts are left out."""
    known = Fingerprint()
    for path, value in sorted(_leaves(values)):
        known.add(path, value)
    return {"numbers": known.digest, "n_numbers": known.count}


def _leaves(values: object, path: str = "") -> Iterable[tuple[str, float | int]]:
    if isinstance(values, Mapping):
        for name, value in values.items():
            yield from _leaves(value, f"{path}/{name}")
    elif isinstance(values, list | tuple):
        for index, value in enumerate(values):
            yield from _leaves(value, f"{path}/{index:04}")
    elif isinstance(values, bool | int | float | np.number) and "seconds" not in path and "time" not in path:
        yield path, values  # type: ignore[misc]  # numpy's numbers are numbers


def flat_tensors(state: object, path: str = "") -> dict[str, Any]:
    """Collect all tensors and arrays of a nested state by their paths; those of optimisers and streams too."""
    if isinstance(state, Mapping):
        items = [(str(name), value) for name, value in state.items()]
    elif isinstance(state, list | tuple):
        items = [(str(index), value) for index, value in enumerate(state)]
    else:
        return {path: state} if hasattr(state, "dtype") and hasattr(state, "shape") else {}
    return {name: one for key, value in items for name, one in flat_tensors(value, f"{path}/{key}").items()}


def npz_arrays(path: Path) -> dict[str, Any]:
    """Read the arrays of a weights file without what it says of its making."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files if name != "meta"}


def run_trainers(options: argparse.Namespace) -> list[Row]:
    """Make the runs that are asked for."""
    import torch

    torch.set_num_threads(1)
    logging.disable(logging.INFO)
    rows = []
    for name, trainer in TRAINERS.items():
        if options.part and name not in options.part:
            continue
        began = time.process_time()
        with tempfile.TemporaryDirectory(prefix="golden-") as folder, silence():
            rows_by_label = trainer(Path(folder))
        rows += [{"trainer": label, **digests} for label, digests in rows_by_label.items()]
        report(options, f"{name}: {time.process_time() - began:.2f} CPU s")
    return rows
