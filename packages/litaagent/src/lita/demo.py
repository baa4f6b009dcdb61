"""``lita demo``: the main job end to end at a small scale, which is what ``make run`` does."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from apexrl.configuration import configuration
from apexrl.runs.errors import ConfigurationError
from lita.console import plain_console

if TYPE_CHECKING:
    from rich.console import Console

_CHAMPIONS = ("PenguinAgent", "AS0", "HorizonAwareAgent")
"""Winners of 2024, 2025 and 2026: the other competitors of the tournament."""
_SHIPPED = "lita"
"""Our agent as it is shipped: its network of partner types comes with the package."""
_HEURISTIC = "lita-v1"
"""Our agent without any trained weights."""
_OURS = "litaagent_std.agents.hrl.LitaAgentHRL"


@configuration
class Config:
    """Run the main job end to end at a small scale.

    A recorded tournament of our agent and three champions; a dataset of it; L2, L3 and the types of partners trained
    from it; the same networks trained further in the league; the trained agent beside the heuristic one and a champion
    in the same worlds; and a report with the ranking, a world, a negotiation, our agent's reasons and the curves. It
    takes one to three minutes on two cores. The same command resumes a stopped run.
    """

    configs: Annotated[int, Field(ge=1)] = 3
    """Configurations to draw; each is played four times, so that every competitor plays every seat once."""
    days: Annotated[int, Field(ge=10, le=200)] = 30
    """Days per world."""
    epochs: Annotated[int, Field(ge=1)] = 4
    """Epochs of offline training."""
    updates: Annotated[int, Field(ge=1)] = 2
    """Updates of online training."""
    worlds: Annotated[int, Field(ge=1)] = 4
    """Worlds of an update, and of the comparison at the end."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the worlds and of the training."""
    output_dir: Path = Path("runs/demo")
    """Folder of the tournament, the trainings, the comparison and the report."""


def run(config: Config) -> int:
    """Walk the whole way of the data: tournament, dataset, offline and online training, arena, report."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    restart_with_fixed_hashing()  # worlds run in this process

    start = time.monotonic()
    console = plain_console()
    print("Five steps, at the default sizes one to three minutes on two cores; the same command resumes them.")
    for number, stage in enumerate((_play, _train, _train_online, _compare), 1):
        print(f"\n{number} of 5.", end=" ")
        status = stage(config)
        if status:
            return status
    print("\n5 of 5. The report")
    _report(config, console)
    console.print(f"All of it took {(time.monotonic() - start) / 60:.1f} minutes.")
    return 0


def _play(config: Config) -> int:
    """Play a tournament of our agent and three champions, and show its standings; return the exit status."""
    from lita.tournament import play
    from litaagent_std.tournament.config import TournamentConfig

    print(
        f"A tournament of our agent and the champions of three years: {4 * config.configs} worlds of {config.days} days"
    )
    tournament = TournamentConfig(
        competitors=(_OURS, *_champions()),
        configs=config.configs,
        runs=1,
        steps=config.days,
        seed=config.seed,
        csv=False,
        reasons=True,
        quiet=True,
        output_dir=config.output_dir / "tournament",
    )
    status = play(tournament, prefix="demo")
    print("So few worlds are noise: lita arena compares agents in many paired worlds.")
    return status


def _champions() -> list[str]:
    from litaagent_std.tournament.competitors.registry import all_paths

    return [path for path in all_paths() if path.rsplit(".", 1)[1] in _CHAMPIONS]


def _train(config: Config) -> int:
    """Train L2, L3 and the types of partners from the records; return the exit status."""
    from litaagent_std.hrl_xf.training.config import TrainRunConfig
    from litaagent_std.hrl_xf.training.launch import train

    print("L2 and L3 learn our agent's decisions from the records, another network the types of partners")
    return train(
        TrainRunConfig(
            data_dir=config.output_dir / "tournament",
            dataset_dir=config.output_dir / "dataset",
            agent_name=_OURS.rsplit(".", 1)[1],
            phases=("l2", "l3", "partner"),
            l2_epochs=config.epochs,
            l3_epochs=config.epochs,
            partner_epochs=config.epochs,
            backfill_folds=2,
            horizon=10,
            seed=config.seed,
            log_dir=config.output_dir / "logs",
            output_dir=config.output_dir / "offline",
        )
    )


def _train_online(config: Config) -> int:
    """Train the same networks further in the league; return the exit status."""
    from litaagent_std.hrl_xf.online.command import run_training, show_summary
    from litaagent_std.hrl_xf.online.config import GateConfig, OnlineConfig, PoolConfig

    print("PPO trains the same L2 further, in worlds of the league")
    trainer, status = run_training(
        OnlineConfig(
            warm=config.output_dir / "offline",
            layers=("l2",),
            updates=config.updates,
            worlds=config.worlds,
            days=(config.days,),
            pool=PoolConfig(slots=0),
            gate=GateConfig(every=0),
            self_every=0,
            seed=config.seed,
            output_dir=config.output_dir / "online",
        )
    )
    show_summary(trainer)
    return status


def _compare(config: Config) -> int:
    """Play the trained agent, the heuristic one, the shipped one and a champion in the same worlds."""
    from lita.arena import arena
    from litaagent_std.arena.config import ArenaConfig

    print("The trained agent beside the heuristic one, the one with the shipped weights, and a champion")
    status = arena(
        ArenaConfig(
            agent=f'lita:{{"weights": "{config.output_dir / "online"}"}}',
            against=(_HEURISTIC, _SHIPPED, "HorizonAwareAgent"),
            worlds=config.worlds,
            days=(config.days,),
            stop_early=False,
            output_dir=config.output_dir / "arena",
        )
    )
    if status == 0:
        _judge(config)
    return status


def _judge(config: Config) -> None:
    """Say what so little training was worth, by the comparison."""
    from apexrl.runs.reading import read_sealed

    reports = (config.output_dir / "arena").glob("*/report.json")
    report = read_sealed(max(reports, key=lambda path: path.stat().st_mtime))
    leads = {row["against"]: row["difference"]["all"] for row in report["comparisons"]}
    for name, what in ((_HEURISTIC, "without weights"), (_SHIPPED, "with the shipped weights")):
        print(f"Trained minus our agent {what}: {leads[name]['mean']:+.3f} in {leads[name]['worlds']} worlds.")
    print(
        f"So little training ({4 * config.configs} recorded worlds, {config.epochs} epochs, {config.updates} updates) "
        "usually loses: networks start as the heuristic agent, and what they learn first is noise. The shipped "
        "weights learned from hundreds of worlds and passed the arena's gate; lita train and lita train-online at that "
        "scale, and the arena with more worlds, are the real job."
    )


def _report(config: Config, console: Console) -> None:
    """Write the report of all stages, and print its address."""
    try:
        from litaagent_std.dashboard.report import make_report, pages_of
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the package {error.name!r} is missing",
            "the report needs the extra `dashboard`",
            "pip install litaagent[dashboard]",
        ) from error
    agent = _OURS.rsplit(".", 1)[1]
    titles = {
        "tournament": "The tournament",
        "world": "One of its worlds",
        "negotiation": "A negotiation to replay",
        "agent": f"Our agent, {agent}, and its reasons",
    }
    pages = [
        replace(page, title=titles[page.template]) for page in pages_of(config.output_dir / "tournament", agent=agent)
    ]
    trainings = {"offline": "Training from the records", "online": "Training in the league"}
    for name, title in trainings.items():
        pages += [replace(page, title=title) for page in pages_of(config.output_dir / name)]
    for folder in sorted(path.parent for path in (config.output_dir / "arena").glob("*/report.json")):
        pages += [replace(page, title="The trained agent in the arena") for page in pages_of(folder)]
    [path] = make_report(pages, config.output_dir / "report.html", title="A first look", figures=False)
    console.print(f"Look at {path.resolve().as_uri()}", soft_wrap=True)
    console.print(
        "It shows the ranking, a world, a negotiation to replay, our agent's reasons, the learning curves, and the "
        "trained agent beside the others."
    )
    console.print(f"With filters and all worlds: lita serve {config.output_dir}", soft_wrap=True)
