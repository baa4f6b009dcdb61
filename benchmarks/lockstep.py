"""Decisions per CPU second of training in lockstep, beside an earlier version of the code.

The same worlds are played by this version in lockstep and by the earlier one world by world, in processes that take
turns. What the driver and the columnar policy gain shows only if both versions compute the same: so both play the
heuristics, which decide alike in both. With networks that explore in all layers each version plays its own, and those
of today (a transformer over the horizon, attention over threads) cost many times the two layers of 64 of the earlier
one: that comparison is shown without a goal. A decision is one seat in one round. The policy's share of the time is
that of the batches (columns, layers, brain) and of our agents' methods (observations, threads, replies).
``make bench-policy`` shows the figures; ``python -m benchmarks.lockstep COMMIT`` measures once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from benchmarks.earlier import ROOT, checkout, environment

_METHODS: Final = ("before_step", "step", "first_proposals", "counter_all", "on_negotiation_success")


def train(worlds: int, seats: int, days: int, networks: bool) -> dict[str, float]:
    """Play training worlds with the code that is installed here; CPU seconds, those of the policy, and decisions.

    Args:
        worlds: Number of worlds.
        seats: Our seats in each.
        days: Days of each.
        networks: Whether networks explore in all layers; otherwise the heuristics decide alone.
    """
    from litaagent_std.hrl_xf.online.worlds import WorldPlan, draw_world, training_seed

    plans = [WorldPlan(seed=training_seed(11, k), days=(days,), levels=3, seats=seats) for k in range(worlds)]
    drawn = [draw_world(plan) for plan in plans]
    try:
        from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds  # noqa: F401 - of this version
    except ImportError:
        play = _before_networks if networks else _before_heuristic
    else:
        play = _now_networks if networks else _now_heuristic
    seconds, policy, decisions = play(drawn)
    return {"seconds": seconds, "policy": policy, "decisions": decisions}


Played = tuple[float, float, int]
"""CPU seconds, those of the policy if they are known, and decisions."""


def _now_heuristic(drawn: Sequence[Any]) -> Played:
    """Play in lockstep; no layer is plugged in."""
    from litaagent_std.hrl_xf.online.lockstep import Lockstep
    from litaagent_std.policy.layers import LayerSet

    def play(worlds: Sequence[Any]) -> Lockstep:
        lockstep = Lockstep(lambda _: LayerSet())
        lockstep.add(worlds)
        lockstep.run()
        lockstep.close()
        return lockstep

    play(drawn[:1])  # imports and caches
    spent, began = _time_agents(), time.process_time()
    played = play(drawn)
    return time.process_time() - began, spent[0] + played.seconds, played.decisions


def _now_networks(drawn: Sequence[Any]) -> Played:
    """Play in lockstep with exploration in all layers."""
    from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
    from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS
    from litaagent_std.hrl_xf.online.methods.networks import untrained
    from litaagent_std.hrl_xf.rewards import DayWeights

    networks = replace(untrained(LAYERS, 1), learning=LAYERS)
    play_worlds(drawn[:1], networks, DayWeights(), [0])  # imports and caches
    spent, began = _time_agents(), time.process_time()
    played = play_worlds(drawn, networks, DayWeights(), list(range(len(drawn))))
    seconds = time.process_time() - began
    return seconds, spent[0] + sum(world.seconds["policy"] for world in played), _rounds(played)


def _before_heuristic(drawn: Sequence[Any]) -> Played:
    """Play world by world with a version whose brain decides for one factory; its rounds have no residuals."""
    from litaagent_std.agents.online.acting import PolicySet

    from litaagent_std.hrl_xf.online import rollout
    from litaagent_std.hrl_xf.rewards import DayWeights
    from litaagent_std.policy.brain import Brain

    play = partial(rollout.play_training_world, policies=PolicySet({}, 0), weights=DayWeights(), rounds=False)
    play(drawn[0], rng_seed=None)  # imports and caches
    its: Any = Brain  # of another version than mypy knows
    decisions, decide = 0, its._decide  # of openings and of answers

    def counted(brain: Any, threads: Any) -> Any:  # noqa: ANN401 - a method
        nonlocal decisions
        decisions += bool(threads)
        return decide(brain, threads)

    its._decide = counted
    began = time.process_time()
    for world in drawn:
        play(world, rng_seed=None)
    return time.process_time() - began, 0.0, decisions


def _before_networks(drawn: Sequence[Any]) -> Played:
    """Play world by world with a version that had other networks online: two layers of 64."""
    from litaagent_std.agents.online.acting import INPUTS, LAYERS, NAMES, ActingNet, PolicySet

    from litaagent_std.hrl_xf.online import rollout
    from litaagent_std.hrl_xf.rewards import DayWeights

    def net(layer: Any) -> Any:  # noqa: ANN401 - a layer's name, and a class of that version
        rng, sizes = np.random.default_rng(1), [INPUTS[layer], 64, 64, len(NAMES[layer])]
        return ActingNet(
            tuple(rng.normal(0.0, 0.3 / np.sqrt(a), (a, b)).astype(np.float32) for a, b in pairwise(sizes)),
            tuple(np.zeros(size, np.float32) for size in sizes[1:]),
            np.full(sizes[-1], -1.5, np.float32),
        )

    policies = PolicySet({layer: net(layer) for layer in LAYERS}, 0)
    play = partial(rollout.play_training_world, policies=policies, weights=DayWeights(), rounds=True)
    play(drawn[0], rng_seed=0)  # imports and caches
    began = time.process_time()
    played = [play(world, rng_seed=seed) for seed, world in enumerate(drawn)]
    return time.process_time() - began, 0.0, _rounds(played)


def _rounds(played: Sequence[Any]) -> int:
    """Return the decisions of worlds whose rounds were sampled."""
    rounds = [seat.rounds for world in played for seat in world.seats]
    return sum(len(np.unique(rows.state_of)) for rows in rounds if rows is not None)


def _time_agents() -> list[float]:
    """Time the methods of our agents from now on; the first entry is their CPU seconds."""
    from litaagent_std.hrl_xf.online.lockstep import LockstepAgent

    spent = [0.0]

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - of the method
            began = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                spent[0] += time.process_time() - began

        return run

    for name in _METHODS:
        setattr(LockstepAgent, name, timed(getattr(LockstepAgent, name)))
    return spent


def _run(root: Path, *arguments: object) -> dict[str, float]:
    call = f"lockstep.train{arguments!r}"
    script = f"import json; from benchmarks import lockstep; print(json.dumps({call}))"
    command, variables = [sys.executable, "-c", script], environment(root, ROOT)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
    made: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return made


def training(commit: str, worlds: int, seats: int, days: int, rounds: int, *, networks: bool) -> dict[str, float]:
    """Return decisions per CPU second before and now, their ratio, and the policy's share of the time.

    Args:
        commit: The earlier version; it plays a quarter of the worlds.
        worlds: Worlds in lockstep.
        seats: Our seats in each.
        days: Days of each.
        rounds: Measurements of each version, which take turns.
        networks: Whether networks explore in all layers, those of each version; otherwise both play the heuristics.
    """
    rows = []
    with checkout(commit, "packages") as root:
        for _ in range(rounds):
            now, before = (
                _run(where, number, seats, days, networks)
                for where, number in ((ROOT, worlds), (root, max(1, worlds // 4)))
            )
            rates = [made["decisions"] / made["seconds"] for made in (before, now)]
            rows.append((*rates, rates[1] / rates[0], now["policy"] / now["seconds"]))
    names = ("before", "now", "ratio", "share")
    return {name: median(row[index] for row in rows) for index, name in enumerate(names)}


if __name__ == "__main__":
    for networks in (False, True):
        measured = training(sys.argv[1], worlds=32, seats=4, days=6, rounds=1, networks=networks)
        print(json.dumps({"networks": networks, **measured}, indent=2))
