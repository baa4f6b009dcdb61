"""``lita explain``, ``lita export`` and ``lita new-agent``: explain decisions, write a submission, write an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from tyro.conf import Positional, arg

from apexrl.configuration import configuration
from lita.console import plain_console

if TYPE_CHECKING:
    from rich.table import Table

    from litaagent_std.agents.explain import Explanation

_WIDTH = 140


@configuration
class ExplainConfig:
    """Print why our agent did what it did with one partner on one day.

    The reasons come from the record, if it holds them (lita collect --reasons); else the world is played again.

    For each round: what was offered, our limit, what we did and why, what L1 clipped, how likely the partner was to
    accept it, and other proposals within the goal. If PARTNER is wrong, the message lists the partners of that day.
    """

    world: Annotated[int, Positional]
    """Index of a world of --source. If there is no --source: the seed of an official world."""

    day: Annotated[int, Positional]
    """The day."""

    partner: Annotated[str, Positional]
    """Id of the partner."""

    source: Path | None = None
    """A tournament's folder, or the folder of one evaluation of the arena (with report.json)."""

    seat: int | None = None
    """Our agent's seat; needed if several of our agents negotiate with PARTNER."""

    agent: str = "lita"
    """If there is no --source: the agent in the competitors' seats, named as for lita arena."""

    days: Annotated[int, Field(ge=5)] | None = None
    """If there is no --source: days of the world. Default: drawn from the official range."""

    levels: Annotated[int, Field(ge=2, le=4)] | None = None
    """If there is no --source: production levels. Default: drawn from the official range."""


def explain(config: ExplainConfig) -> int:
    """Print the explanation."""
    from litaagent_std.world.reproducible.hashing import restart_with_fixed_hashing

    restart_with_fixed_hashing()  # the world runs in this process

    console = plain_console(_WIDTH, highlight=False)
    explanation = _explanation(config)
    console.print(_heading(explanation), markup=False)
    console.print(_goals(explanation))
    console.print(_decisions(explanation))
    return 0


def _explanation(config: ExplainConfig) -> Explanation:
    """Return the reasons of the record, or of the world played again."""
    from litaagent_std.agents.explain import explain, from_record, from_seed, from_source

    asked = (config.day, config.partner, config.seat)
    if config.source is None:
        return explain(from_seed(config.world, config.agent, config.days, config.levels), *asked)
    recorded = from_record(config.source, config.world, *asked)
    return recorded or explain(from_source(config.source, config.world), *asked)


def _heading(explanation: Explanation) -> str:
    from litaagent_std.records.reasons import types_text

    obs, first, last = explanation.obs, explanation.records[0], explanation.records[-1]
    side = "buys from" if first.buying else "sells to"
    agenda = obs.buy_agenda if first.buying else obs.sell_agenda
    band = "" if agenda is None else f"; legal prices {agenda.price_min} to {agenda.price_max}"
    return (
        f"{explanation.origin}, day {obs.day} of {obs.n_days}: {explanation.agent} (seat {explanation.seat}, "
        f"level {obs.level} of {obs.n_levels}) {side} {first.partner}\n"
        f"cash {obs.cash:.0f}, stock {obs.stock_in}, stock is {explanation.regime}{band}; "
        f"affordable {first.bounds.buy} units\n"
        f"type of {first.partner} at the first decision: {types_text(first)}; at the last: {types_text(last)}"
    )


def _goals(explanation: Explanation) -> Table:
    """Return the goal and the bounds by delivery day, at the first decision of the thread."""
    from rich.table import Table

    first = explanation.records[0]
    goals, bounds = first.goals, first.bounds
    quantities, prices = (goals.q_buy, goals.p_buy) if first.buying else (goals.q_sell, goals.p_sell)
    table = Table("delivery day", title="goal and bounds at the first decision", title_justify="left")
    rows: dict[str, list[str]] = {
        "goal, units": [str(units) for units in quantities],
        "most to pay" if first.buying else "least to ask": [f"{price:g}" for price in prices],
    }
    urgency = goals.urgency(selling=not first.buying)
    if urgency is not None:
        rows["urgency"] = [f"{value:.2f}" for value in urgency]
    if not first.buying:
        rows["lines free (hard bound)"] = [str(units) for units in bounds.lines]
        rows["covered by input"] = [str(units) for units in bounds.covered]
    for lead in range(len(quantities)):
        table.add_column(str(first.day + lead), justify="right")
    for name, values in rows.items():
        table.add_row(name, *values)
    return table


def _decisions(explanation: Explanation) -> Table:
    from rich.table import Table
    from rich.text import Text

    from litaagent_std.records.reasons import offer_text, reason

    table = Table(title="decisions, round by round", title_justify="left", show_lines=True)
    table.add_column("round", justify="right")
    for column in ("received", "our limit", "we", "because", "others within the goal (probability)"):
        table.add_column(column)
    for record in explanation.records:
        decision = record.decision
        action = f"offer {offer_text(decision.offer)}" if decision.kind == "reject" else decision.kind
        others = [f"{offer_text(offer)} ({chance:.2f})" for offer, chance in record.alternatives]
        limit = "–" if record.reservation is None else f"{record.reservation:g}"
        cells = (
            str(record.round),
            offer_text(record.received),
            limit,
            action,
            reason(record),
            "\n".join(others) or "–",
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


@configuration
class ExportConfig:
    """Write our agent as a zip that the league can play: agent, policy, settings, weights, requirements.

    The zip needs scml and numpy and nothing of this project. Unless --no-verify is given, a world is played from it in
    a process that cannot import this project. The same options give the same bytes.
    """

    path: Annotated[Path, Positional] = Path("submission.zip")
    """The zip to write."""

    name: str = "LitaAgentHRL"
    """Name of the agent's class."""

    parameters: str | None = None
    """Tuned parameters: a file, or the name of one that comes with the package. Default: the agent's own."""

    l2: Literal["heuristic", "learned"] | None = None
    """Version of L2, the day's goals. Default: learned if the weights hold it, else heuristic."""

    l3: Literal["baseline", "model", "types", "learned"] | None = None
    """Version of L3, the decisions in a thread; types names partners' types by a trained network. Default: learned if
    the weights hold it, else types."""

    l4: Literal["greedy", "joint", "learned"] | None = None
    """Version of L4, the decisions across threads. Default: learned if the weights hold it, else joint."""

    weights: Path | None = None
    """Weights of the learned layers: a file, a folder, or the folder of a run. Without --l2, --l3 and --l4 every layer
    that they hold is learned."""

    verify: bool = True
    """Play a world from the zip without this project."""

    venv: bool = False
    """Verify in a new virtual environment made from the zip's requirements.txt; takes minutes and a package index."""

    days: Annotated[int, Field(ge=3)] = 10
    """Days of the world that is played to verify the zip."""


def export(config: ExportConfig) -> int:
    """Write the zip, and play a world from it if ``verify`` is set."""
    from litaagent_std.agents.export import Submission, verify, write

    submission = Submission(config.name, _settings(config), config.weights)
    write(submission, config.path)
    size = config.path.stat().st_size / 1e6
    print(f"{config.path}: {size:.2f} MB, class {submission.class_path}")
    if config.verify:
        played = verify(config.path, submission.class_path, n_days=config.days, fresh_environment=config.venv)
        where = "a new environment" if config.venv else "isolation"
        print(
            f"verified in {where}, without this project: {played['days']} days, {played['agents']} of the agent, "
            f"{played['contracts']} contracts"
        )
    return 0


def _settings(config: ExportConfig) -> dict[str, Any]:
    layers = {"l2": config.l2, "l3": config.l3, "l4": config.l4}
    settings: dict[str, Any] = {name: version for name, version in layers.items() if version is not None}
    if config.parameters is not None:
        from litaagent_std.tournament.competitors.parameter_files import read_parameters

        settings["parameters"] = read_parameters(config.parameters)
    return settings


@configuration
class NewAgentConfig:
    """Write a working agent on top of our layers, with a test that passes; nothing is overwritten."""

    name: Annotated[str, Positional]
    """Name of the agent's class, such as MyAgent."""

    folder: Annotated[Path, arg(name="dir")] = Path()
    """Folder to write to."""

    weights: Path | None = None
    """Weights that the agent plays: a file, a folder, or the folder of a run; they are copied. Default: an agent with
    an L3 of its own, to change."""


def new_agent(config: NewAgentConfig) -> int:
    """Write the agent and its test, and print the commands that test and measure it."""
    from litaagent_std.agents.scaffold import write_agent

    agent, test = write_agent(config.name, config.folder, config.weights)
    print(f"{agent}: the agent\n{test}: its test")
    print(f"test it:     pytest {test}")
    print(f"measure it:  PYTHONPATH={config.folder} lita arena {agent.stem}.{config.name} --against lita --worlds 20")
    return 0
