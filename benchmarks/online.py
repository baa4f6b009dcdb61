"""Decisions per CPU second of online training beside scml's own RL environment, and what the time goes into.

A decision is one seat in one round. Both sides play the same configuration with the same default agents in one
process. Ours are whole worlds with everything in them: drawing, features, the four layers, L2, L3 and L4 networks, and
the heuristic agent beneath. scml's is `scml.oneshot.rl.env.OneShotEnv` on a Standard world (`StdEnv` of scml 0.8.4
cannot be constructed) with its own flexible action and observation managers and the same offer in every round; only its
steps are counted, not its resets.
"""

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from io import StringIO
from statistics import median
from typing import Any

import numpy as np

from apexrl.execution import make_executor
from benchmarks.harness import Benchmark, Figure
from litaagent_std.hrl_xf.online.config import GateConfig, OnlineConfig, PoolConfig
from litaagent_std.hrl_xf.online.hierarchy.play import play_worlds
from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS
from litaagent_std.hrl_xf.online.lockstep import LockstepAgent
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.online.trainer import Trainer
from litaagent_std.hrl_xf.online.worlds import OURS, training_world_of
from litaagent_std.hrl_xf.rewards import DayWeights
from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing
from litaagent_std.world.scml.engine import plain_scml_world
from litaagent_std.world.setup import AgentSpec, WorldSetup, official_setup

SHIPPED, QUIET = "as shipped", "logs off"
GOALS = {SHIPPED: 100.0, QUIET: 10.0}
PARTNERS = 5
OPTIONS: dict[str, dict[str, Any]] = {
    SHIPPED: {"one_offer_per_step": True},
    QUIET: {
        "one_offer_per_step": True,
        "no_logs": True,
        "compact": True,
        "fast": True,
        "sync_calls": True,
        "saved_details_level": 0,
    },
}
_AGENT_METHODS = ("before_step", "step", "first_proposals", "counter_all")


def make_setup(seed: int, days: int) -> tuple[WorldSetup, int]:
    """Return a three-level world with `PARTNERS` factories at both edges, and a seat in its middle."""
    while True:
        setup = replace(official_setup(seed, n_days=days, n_levels=3), neutral_names=True)
        levels = [factory.level for factory in setup.factories]
        if Counter(levels)[0] == Counter(levels)[2] == PARTNERS:
            return setup, levels.index(1)
        seed += 1000


def ours(setup: WorldSetup, seat: int) -> dict[str, float]:
    """Decisions and days per CPU second of a whole world of ours."""
    networks = replace(untrained(LAYERS, 0), learning=LAYERS)
    table = training_world_of(setup.with_agents({seat: AgentSpec(OURS, competitor=True)}))
    started = time.process_time()
    [rollout] = play_worlds([table], networks, DayWeights(), [0])
    seconds = time.process_time() - started
    rows = rollout.seats[0].rounds
    assert rows is not None  # rounds were asked for
    return {"decisions": len(rows.states) / seconds, "days": rollout.n_days / seconds}


def scml_env(setup: WorldSetup, seat: int, variant: str) -> Any:  # noqa: ANN401 - scml has no type information
    """Scml's RL environment on a given world."""
    from scml.oneshot.rl.action import FlexibleActionManager
    from scml.oneshot.rl.env import OneShotEnv
    from scml.oneshot.rl.observation import FlexibleObservationManager
    from scml.std.agents.nothing import StdPlaceholder
    from scml.std.context import FixedPartnerNumbersStdContext

    placed = setup.with_agents({seat: AgentSpec("scml.std.agents.nothing.StdPlaceholder")})

    class OneWorld(FixedPartnerNumbersStdContext):  # type: ignore[misc]
        """Give the same world every time; the check by twenty random worlds is left out."""

        def generate(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            world = plain_scml_world(placed, **OPTIONS[variant])
            world.save_negotiations = variant == SHIPPED and world.save_negotiations
            mine = [
                agent._obj
                for agent in world.agents.values()
                if isinstance(getattr(agent, "_obj", None), StdPlaceholder)
            ]
            return world, tuple(mine)

        def contains_context(self, *args: Any, **kwargs: Any) -> bool:  # noqa: ANN401
            return True

    context = OneWorld(level=1, n_processes=3, n_suppliers=PARTNERS, n_consumers=PARTNERS)
    return OneShotEnv(
        FlexibleActionManager(context=context),
        FlexibleObservationManager(context=context),
        context=context,
        agent_type=StdPlaceholder,
        extra_checks=False,
    )


def scml(setup: WorldSetup, seat: int, variant: str, budget: float) -> dict[str, float]:
    """Decisions and days per CPU second of scml's environment, measured for a budget of CPU seconds."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = scml_env(setup, seat, variant)
        env.reset(seed=1)
        action = np.zeros((2 * PARTNERS, 2), dtype=np.int64)
        action[:, 0] = 2  # two units; the lowest price from suppliers, the highest from consumers
        action[PARTNERS:, 1] = 1
        steps, started, over = 0, time.process_time(), False
        while not over and time.process_time() - started < budget:
            _, _, over, _, _ = env.step(action.ravel())
            steps += 1
        seconds = time.process_time() - started
    return {"decisions": steps / seconds, "days": env._world.current_step / seconds}


def compare(seed: int, days: int, budget: float) -> dict[str, Any]:
    """Measure all sides on one configuration."""
    setup, seat = make_setup(seed, days)
    ours(*make_setup(seed, 6))  # imports and caches
    rates: dict[str, Any] = {"ours": ours(setup, seat)}
    for variant in OPTIONS:
        rates[variant] = scml(setup, seat, variant, budget)
    return rates


def shares(worlds: int, days: int, updates: int) -> dict[str, float]:
    """CPU seconds of a short training of all layers, by what they were spent on."""
    spent = {"agents": 0.0}

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            started = time.process_time()
            try:
                return method(*args, **kwargs)
            finally:
                spent["agents"] += time.process_time() - started

        return run

    kept = {name: getattr(LockstepAgent, name) for name in _AGENT_METHODS}
    cfg = OnlineConfig(
        layers=LAYERS,
        worlds=worlds,
        days=(days,),
        levels=3,
        pool=PoolConfig(slots=0, held_out=()),
        gate=GateConfig(every=0),
        self_every=0,
    )
    try:
        for name, method in kept.items():
            setattr(LockstepAgent, name, timed(method))
        with make_executor("inline") as executor:
            trainer = Trainer(cfg, executor, cfg.output_dir)
            for _ in range(updates):
                trainer.collect()
                trainer.update()
    finally:
        for name, method in kept.items():
            setattr(LockstepAgent, name, method)
    seconds = trainer.seconds
    return {
        "world": seconds["world"] - spent["agents"],
        "agents": spent["agents"] + seconds["policy"],
        "inference": seconds["inference"],
        "update": seconds["update"],
    }


def main() -> int:
    """Measure, and compare with the goals."""
    restart_with_fixed_hashing()
    bench = Benchmark("online", "Decisions per CPU second beside scml's own RL environment.", seeds=range(3))
    days, budget = (20, 4.0) if bench.quick else (50, 20.0)
    seeds = list(bench.seeds)[:1] if bench.quick else list(bench.seeds)
    rates = [bench.unit(f"compare-{seed}", compare, seed=seed, days=days, budget=budget) for seed in seeds]
    time_of = bench.unit("shares", shares, worlds=2 if bench.quick else 8, days=days, updates=1 if bench.quick else 2)
    figures = [
        Figure(name="decisions per CPU s, ours", value=median(rate["ours"]["decisions"] for rate in rates), unit="1/s")
    ]
    for variant, goal in GOALS.items():
        ratio = median(rate["ours"]["decisions"] / rate[variant]["decisions"] for rate in rates)
        theirs = median(rate[variant]["decisions"] for rate in rates)
        note = f"scml {variant}: {theirs:.3g}/s"
        figures.append(Figure(name=f"decisions, ratio to scml {variant}", value=ratio, unit="x", goal=goal, note=note))
        by_day = median(rate["ours"]["days"] / rate[variant]["days"] for rate in rates)
        figures.append(Figure(name=f"days, ratio to scml {variant}", value=by_day, unit="x"))
    total = sum(time_of.values())
    figures += [
        Figure(name=f"share of time: {name}", value=100 * value / total, unit="%") for name, value in time_of.items()
    ]
    return bench.finish(figures)


if __name__ == "__main__":
    sys.exit(main())
