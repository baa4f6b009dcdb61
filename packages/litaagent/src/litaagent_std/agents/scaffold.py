"""A first agent of a user's own, with a test: a class on top of the layers, or one that plays trained weights."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from string import Template
from typing import Final

from apexrl.runs.atomic import atomic_file, write_text
from apexrl.runs.errors import ConfigurationError
from litaagent_std.policy.learned import load_layers
from litaagent_std.policy.networks.weights import WeightsError, weights_path

__all__ = ["class_name", "module_name", "write_agent"]

_LIBRARIES: Final = ("litaagent_std", "negmas", "numpy", "pytest", "scml")

_AGENT: Final = Template('''"""$name: an agent for the Standard league of SCML, on top of the layers of LitaAgentHRL."""

from collections.abc import Mapping
from typing import Any

from litaagent_std import LitaAgentHRL
from litaagent_std.policy import Action, Situation

__all__ = ["$name", "Patience"]


class Patience:
    """An L3 that asks for our best price in the first rounds, then keeps the plan.

    It sees the whole round (`Situation`: threads, goals, bounds, the heuristic plan) and may return anything: L1 clips
    it to the agenda, the lines, the input and the cash before it leaves the agent.
    """

    def __init__(self, rounds: int = 3) -> None:
        self.rounds = rounds

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> dict[str, Action]:
        """Return an action for each thread that departs from the plan."""
        agenda = situation.agenda
        best = agenda.price_max if situation.selling else agenda.price_min
        actions: dict[str, Action] = {}
        for thread in situation.threads:
            offer = situation.plan.offers.get(thread.partner)
            if thread.round < self.rounds and offer is not None:
                actions[thread.partner] = Action("counter", offer._replace(price=best))
        return actions


class $name(LitaAgentHRL):
    """Plays like LitaAgentHRL, but with more patience.

    Other layers are replaced in the same way: ``goal_layer`` sets the day's goals (L2), ``coordination_layer`` decides
    across threads (L4); ``parameters`` changes the parameters of the heuristics.
    """

    def __init__(self, *args: Any, rounds: int = 3, **kwargs: Any) -> None:
        super().__init__(*args, decision_layer=Patience(rounds), **kwargs)
''')

_TRAINED: Final = Template('''"""$name: an agent for the Standard league of SCML that plays trained weights."""

from pathlib import Path
from typing import Any

from litaagent_std import LitaAgentHRL

__all__ = ["$name"]

WEIGHTS = Path(__file__).with_name("${module}_weights")


class $name(LitaAgentHRL):
    """Plays the weights beside this file; layers that they do not hold are the heuristics."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"weights": WEIGHTS} | kwargs)
''')

_HEAD: Final = '''import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the agent can be imported wherever pytest is started

from litaagent_std import AgentSpec, official_setup
from litaagent_std.world.events import WorldObserver
from litaagent_std.world.fast.engine import FastWorld

from $module import $name

DAYS = 6


class Listener(WorldObserver):
    """Collects errors."""

    def __init__(self):
        self.errors = []

    def on_error(self, event):
        self.errors.append(event)


def play():
    """Play a small world with the agent at each level; return the world, the agents and the errors."""
    setup = official_setup(1, n_days=DAYS, n_levels=2)
    seats = {}
    for seat, factory in enumerate(setup.factories):
        seats.setdefault(factory.level, seat)
    spec = AgentSpec("$module.$name", {"keep_log": True}, competitor=True)
    listener = Listener()
    world = FastWorld(setup.with_agents({seat: spec for seat in seats.values()}), [listener])
    world.run()
    return world, [world.seats[seat].agent for seat in seats.values()], listener.errors


def test_it_plays_every_level_without_an_error():
    world, agents, errors = play()
    assert errors == []
    assert world.current_step == DAYS
    assert all(isinstance(agent, $name) for agent in agents)
    assert all(agent.brain.log for agent in agents)
'''

_TRAINED_TEST: Final = Template(
    f'''"""$name plays a small world with its weights, without an error."""

{_HEAD}

def test_it_plays_learned_layers():
    _, agents, _ = play()
    assert all(agent.brain.layers.learned for agent in agents)
'''
)

_TEST: Final = Template(
    f'''"""$name plays a small world without an error, and asks for its best price first."""

{_HEAD}

def test_it_asks_for_the_best_price_first():
    _, agents, _ = play()
    seller = agents[0]
    early = [r for r in seller.brain.log if r.round < 3 and r.decision.kind == "reject"]
    assert early
    for record in early:
        prices = seller.brain.obs.price_history[record.day]
        assert record.decision.offer.price == int(1.1 * prices[1])
'''
)


def class_name(name: str) -> str:
    """Check the name of a class.

    Raises:
        ConfigurationError: If it is no identifier, or a keyword.
    """
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name) or name.startswith("_"):
        raise ConfigurationError(
            f"{name!r} cannot name an agent",
            "a name consists of letters, digits and _, begins with a letter and is no keyword of Python",
            "choose another name, such as MyAgent",
        )
    return name


def module_name(name: str) -> str:
    """Return the module of a class: ``MyAgent`` lives in ``my_agent``; a module never shadows one of Python's."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name(name)).lower()
    taken = {name, *keyword.kwlist, *sys.stdlib_module_names, *_LIBRARIES}
    return f"{snake}_agent" if snake in taken else snake


def write_agent(name: str, folder: Path, weights: Path | None = None) -> tuple[Path, Path]:
    """Write an agent and its test.

    Args:
        name: Name of the agent's class.
        folder: The folder; created if it does not exist.
        weights: File or folder of weights, or the folder of a training run, to play; they are copied to the agent.
            Default: an agent with an L3 of its own.

    Returns:
        The two files.

    Raises:
        ConfigurationError: If the name is not possible, one of the files exists, or the weights cannot be played.
    """
    values = {"name": class_name(name), "module": module_name(name)}
    files = (folder / f"{values['module']}.py", folder / f"test_{values['module']}.py")
    copies = _copies(weights, folder / f"{values['module']}_weights")
    for file in (*files, *copies):
        if file.exists():
            raise ConfigurationError(
                f"{str(file)!r} exists already", "nothing is overwritten", "choose another name or another --dir"
            )
    for file, source in copies.items():
        with atomic_file(file) as copy:
            copy.write(source.read_bytes())
    templates = (_AGENT, _TEST) if weights is None else (_TRAINED, _TRAINED_TEST)
    for file, template in zip(files, templates, strict=True):
        write_text(file, template.substitute(values))
    return files


def _copies(weights: Path | None, folder: Path) -> dict[Path, Path]:
    """Return the files of weights by where they are copied to, after making sure that they can be played."""
    if weights is None:
        return {}
    try:
        load_layers(weights)
    except WeightsError as error:
        raise ConfigurationError(f"--weights: {error}") from error
    source = weights_path(weights)
    files = sorted(source.glob("*.npz")) if source.is_dir() else [source]
    return {folder / file.name: file for file in files}
