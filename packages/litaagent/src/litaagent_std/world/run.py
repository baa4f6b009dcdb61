"""Run a world on either engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from apexrl.runs.errors import ConfigurationError
from litaagent_std.world.events import WorldEnd
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.isolated import open_path
from litaagent_std.world.native.registry import Defaults
from litaagent_std.world.reproducible.hashing import warn_unless_fixed
from litaagent_std.world.rules.settlement import Inventory
from litaagent_std.world.setup import WorldSetup

Engine = Literal["fast", "scml"]


def run_world(
    setup: WorldSetup,
    engine: Engine = "fast",
    observers: Iterable[object] = (),
    inventory: Inventory = "as_shipped",
    call_limit: float | None = None,
    defaults: Defaults = "hosted",
) -> WorldEnd:
    """Run a world to its end.

    Args:
        setup: The world.
        engine: ``fast``, or ``scml`` for scml's own world.
        observers: Receive the events; see `events.WorldObserver`.
        inventory: Whether production consumes input stock (``depleting``) or not (``as_shipped``).
        call_limit: Seconds after which a turn of an agent is given up; the outcome says whether that happened.
        defaults: Who plays the league's default agents: ``hosted`` agent objects, or ``native`` agents, which play the
            same in a fraction of the time (fast engine only).

    Returns:
        Scores, errors and whether a wall-clock limit fired.
    """
    warn_unless_fixed()
    if engine == "fast":
        return FastWorld(setup, observers, inventory=inventory, call_limit=call_limit, defaults=defaults).run()
    if engine == "scml" and any(open_path(agent.path) != agent.path for agent in setup.agents):
        raise ConfigurationError(
            "an isolated agent is to play in scml's own engine",
            "isolated agents play in the fast one, which gives the same results",
            "leave --engine scml out, or the isolation",
        )
    if engine == "scml" and defaults != "hosted":
        raise ValueError(f"defaults={defaults!r} needs engine='fast'; with engine='scml' leave it out")
    if engine == "scml":
        from litaagent_std.world.scml.engine import make_scml_world

        return make_scml_world(setup, observers, inventory=inventory, call_limit=call_limit).run_to_end()
    raise ValueError(f"engine={engine!r} is unknown; choose 'fast' or 'scml'")
