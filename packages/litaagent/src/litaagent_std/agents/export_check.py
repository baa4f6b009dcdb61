"""A script that plays a world with a submission where this project cannot be imported.

It is run by ``python -I -S``: it imports nothing of this project, and imports scml from the folders that it is given.
Every failure raises.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import random
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

OURS: Final = ("litaagent_std", "lita", "apexrl", "hmasd")
"""Packages that a submission must do without."""

_SEED: Final = 1
"""Draws the configuration of the world, the same for every check."""


class _Blocked(importlib.abc.MetaPathFinder):
    """Make this project impossible to import where it is installed beside scml."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in OURS:
            raise ModuleNotFoundError(f"{fullname} is not part of the submission", name=fullname)
        return None


def play(class_path: str, n_days: int) -> dict[str, Any]:
    """Play a world of scml's own with the submitted agent at both ends of the chain, and count its contracts.

    Args:
        class_path: The agent's class.
        n_days: Days of the world.
    """
    import numpy as np
    from scml.std import SCML2024StdWorld
    from scml.std.agents import GreedyStdAgent, SyncRandomStdAgent

    module, _, name = class_path.rpartition(".")
    agent_type = getattr(importlib.import_module(module), name)
    random.seed(_SEED)
    np.random.seed(_SEED)  # scml draws its worlds from the global streams
    # A type and a level for every factory: scml draws from fewer types, and might leave the submission's out.
    world = SCML2024StdWorld(
        **SCML2024StdWorld.generate(
            agent_types=[agent_type, GreedyStdAgent, SyncRandomStdAgent] * 2,
            agent_processes=[0, 0, 0, 1, 1, 1],
            n_steps=n_days,
            n_processes=2,
            random_agent_types=False,
        ),
        no_logs=True,
        ignore_agent_exceptions=False,
        ignore_negotiation_exceptions=False,
        ignore_contract_execution_exceptions=False,
        ignore_simulation_exceptions=False,
    )
    world.run()
    ours = [agent.id for agent in world.agents.values() if type(getattr(agent, "_obj", agent)).__name__ == name]
    signed = [c for c in world.saved_contracts if c["signed_at"] >= 0 and {c["buyer_name"], c["seller_name"]} & {*ours}]
    return {"agents": len(ours), "contracts": len(signed), "days": int(world.current_step)}


def check(folder: str, class_path: str, n_days: int, libraries: Sequence[str]) -> dict[str, Any]:
    """Make the project impossible to import, and play.

    Args:
        folder: The unpacked submission.
        class_path: The agent's class.
        n_days: Days of the world.
        libraries: Folders from which scml is imported.

    Raises:
        RuntimeError: If a package of this project was imported all the same, or the agent never agreed on anything.
    """
    sys.path[:0] = [folder]
    sys.path.extend(libraries)
    sys.meta_path.insert(0, _Blocked())
    warnings.filterwarnings("ignore")
    result = play(class_path, n_days)
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] in OURS)
    if loaded:
        raise RuntimeError(f"the submission imported {loaded}, which the league does not have")
    if not result["agents"] or not result["contracts"]:
        raise RuntimeError(f"the agent of the submission did nothing in its world: {result}")
    return result


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])))
