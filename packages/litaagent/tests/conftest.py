"""What the league's tests share: a small tournament, watching agents, small worlds and their records."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup


@pytest.fixture(scope="session")
def collect():
    """Collects a small tournament into a folder; options are those of `TournamentConfig`."""
    from litaagent_std.tournament.config import TournamentConfig
    from litaagent_std.tournament.run import run_tournament

    def collect(folder, **options):
        small = {
            "competitors": ("RandomStd", "GreedyStd"),
            "configs": 1,
            "runs": 1,
            "steps": 6,
            "levels": 2,
            "executor": "inline",
            "quiet": True,
        }
        run_tournament(TournamentConfig(**small | options, output_dir=folder))
        return folder

    return collect


@pytest.fixture(scope="session")
def watching_agents():
    """The module of watching agents, importable by path as seats need it."""
    name = "watching_agents"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def record_world():
    """Runs a world under a recorder and returns its record."""

    def run(setup, engine="fast", inventory="as_shipped", world=0, observers=()):
        labels = tuple(agent.path if agent.competitor else None for agent in setup.agents)
        facts = WorldFacts(world, 0, 0, 0, setup.seed, labels, inventory)
        recorder = Recorder(setup, facts)
        run_world(setup, engine=engine, observers=[recorder, *observers], inventory=inventory)
        return WorldRecord(recorder.tables())

    return run


@pytest.fixture(scope="session")
def watched_setup(watching_agents):
    """Makes a world whose seats are all watched; poor factories bring bankruptcies."""

    def make(seed, n_days=14, n_levels=3, poor=False):
        setup = official_setup(seed, n_days=n_days, n_levels=n_levels)
        kinds = ("WatchingRandom", "WatchingGreedy", "Spends" if poor else "WatchingRandom")
        agents = {s: AgentSpec(f"watching_agents.{kinds[s % 3]}") for s in range(setup.n_seats)}
        setup = setup.with_agents(agents)
        if poor:
            setup = replace(setup, factories=tuple(replace(f, balance=f.balance // 4) for f in setup.factories))
        return setup

    return make
