# SPDX-License-Identifier: AGPL-3.0-or-later
"""The SCML Standard league: world, tournaments, records, the four-layer agent, arena and training.

The names below are imported when they are first used, so that ``import litaagent_std`` is cheap::

    from litaagent_std import LitaAgentHRL, official_setup, run_world

    world = run_world(official_setup(0, [LitaAgentHRL], n_days=20))
    print(world.scores)

==================  ======================================================================================
``world``           the league's rules, the fast engine, scml's own engine, reproducible randomness
``tournament``      competitors, plan, run and standings of tournaments
``records``         columnar records of everything that happened in a world
``policy``          the agent's decisions in four layers, numpy only
``agents``          `LitaAgentHRL` and its variants, explanations, export of a submission
``arena``           paired evaluation, sequential tests, tuning
``hrl_xf``          datasets, offline training and online training of the layers
``hrl_x``           linear models on the same datasets
``dashboard``       tournaments, evaluations and trainings in the browser
==================  ======================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from litaagent_std.agents.hrl import LitaAgentHRL
    from litaagent_std.policy.parameters import Parameters
    from litaagent_std.records.reader import open_records
    from litaagent_std.tournament.config import TournamentConfig
    from litaagent_std.tournament.run import run_tournament
    from litaagent_std.world.run import run_world
    from litaagent_std.world.setup import AgentSpec, WorldSetup, official_setup

    __version__: str
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "litaagent_std.agents.hrl": ("LitaAgentHRL",),
            "litaagent_std.policy.parameters": ("Parameters",),
            "litaagent_std.records.reader": ("open_records",),
            "litaagent_std.tournament.config": ("TournamentConfig",),
            "litaagent_std.tournament.run": ("run_tournament",),
            "litaagent_std.world.run": ("run_world",),
            "litaagent_std.world.setup": ("AgentSpec", "WorldSetup", "official_setup"),
        },
        distribution="litaagent",
    )

__all__ = [
    "AgentSpec",
    "LitaAgentHRL",
    "Parameters",
    "TournamentConfig",
    "WorldSetup",
    "__version__",
    "official_setup",
    "open_records",
    "run_tournament",
    "run_world",
]
