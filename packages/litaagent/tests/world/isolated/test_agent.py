"""Isolated agents play as they would in the world's own process; a seat whose process is lost falls silent."""

import json
import os
import time

import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.tournament.competitors.integer_offers import integer_path
from litaagent_std.world.events import WorldObserver
from litaagent_std.world.isolated import agent as isolated_agent
from litaagent_std.world.isolated import isolated_path, open_path
from litaagent_std.world.isolated.sandbox import Limits
from litaagent_std.world.run import run_world
from litaagent_std.world.scml.trace import Trace, first_difference
from litaagent_std.world.setup import AgentSpec, official_setup

AGENTS = '''
import os
import time
from scml.std.agents.greedy import GreedyStdAgent
from scml.std.agents.rand import SyncRandomStdAgent

HEARD = []


class Watches(SyncRandomStdAgent):
    """Raises what it sees: all that the public interface shows at the end of the third day."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_negotiation_success(self, contract, mechanism):
        self.seen.append((contract.agreement, contract.annotation, mechanism.state.step, mechanism.id))

    def on_negotiation_failure(self, partners, annotation, mechanism, state):
        self.seen.append((partners, annotation["buyer"], state.step, state.broken, state.timedout))

    def counter_all(self, offers, states):
        shown = {p: (s.step, s.relative_time, s.current_offer, s.waiting) for p, s in states.items()}
        self.seen.append((offers, shown))
        self.seen.append(sorted(self.awi.current_offers.items()))
        self.seen.append({p: self.get_nmi(p).trace for p in self.active_negotiators})
        return super().counter_all(offers, states)

    def step(self):
        awi, ufun = self.awi, self.ufun
        self.seen.append({
            name: repr(getattr(awi, name))
            for name in (
                "current_step", "relative_time", "current_balance", "current_score", "current_inventory",
                "needed_sales", "needed_supplies",
                "trading_prices", "catalog_prices", "exogenous_contract_summary", "all_suppliers",
                "my_consumers", "sales", "supplies", "future_sales", "future_supplies", "current_disposal_cost",
                "current_storage_cost", "current_shortfall_penalty", "n_lines", "level", "current_input_issues",
                "production_capacities", "my_competitors", "current_exogenous_input_price", "params",
            )
        })
        self.seen.append((repr(ufun.find_limit(True)), repr(ufun.from_offers([(2, awi.current_step, 9)], [True]))))
        self.seen.append((repr(awi.bb_read("settings", "n_steps")), repr(awi.reports_of_agent(self.id))))
        self.seen.append((awi.is_bankrupt(), repr(self.make_ufun().max_utility)))
        if awi.current_step == 6:
            raise RuntimeError(repr(self.seen)[:100_000])


class Shares(GreedyStdAgent):
    """Raises what all its seats together have heard: seats of a world share the state of their module."""

    def init(self):
        HEARD.append(self.id)

    def step(self):
        raise RuntimeError(repr(HEARD))


class Ends(GreedyStdAgent):
    def before_step(self):
        super().before_step()
        if self.awi.current_step == 2:
            os._exit(1)


class Hangs(GreedyStdAgent):
    def propose(self, negotiator_id, state):
        time.sleep(1000)


class RaisesInConstructor(GreedyStdAgent):
    def __init__(self):
        raise RuntimeError("not today")


class Loads(GreedyStdAgent):
    """Raises the text of the file that its parameter names."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def step(self):
        raise RuntimeError(open(self.weights).read())
'''


class Errors(WorldObserver):
    def __init__(self):
        self.texts = []

    def on_error(self, event):
        self.texts.append((event.agent[:2], event.where, event.kind, event.message))


@pytest.fixture
def agents(tmp_path, monkeypatch):
    name = f"isolated_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(AGENTS)
    tmp_path.chmod(0o755)  # root's isolated agents play as nobody
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(isolated_agent, "_LIMITS", Limits(call_seconds=3.0, memory=1 << 30))
    return name


def world(*paths, days=7, seats=2):
    return official_setup(11, list(paths), n_days=days, n_levels=3, n_competitors=seats)


def isolate(setup):
    seats = {seat: agent for seat, agent in enumerate(setup.agents) if agent.competitor}
    return setup.with_agents(
        {seat: AgentSpec(isolated_path(a.path), a.params, competitor=True) for seat, a in seats.items()}
    )


def played(setup):
    trace, errors = Trace(), Errors()
    end = run_world(setup, observers=[trace, errors], defaults="native")
    assert end.days == setup.n_days
    return trace, errors.texts, end


def test_paths_name_what_they_isolate():
    path = integer_path("a.b.C")
    assert open_path(isolated_path(path)) == path
    assert isolated_path(isolated_path(path)) == isolated_path(path)
    assert open_path("a.b.C") == "a.b.C"


def test_default_agents_play_the_same_event_by_event():
    setup = world(
        "scml.std.agents.rand.RandomStdAgent",
        "scml.std.agents.greedy.GreedyStdAgent",
        "scml.std.agents.rand.SyncRandomStdAgent",
        seats=3,
    )
    plain, apart = played(setup), played(isolate(setup))
    assert first_difference(plain[0], apart[0]) is None
    assert plain[2] == apart[2]


def test_our_agent_plays_the_same_event_by_event():
    setup = world("litaagent_std.agents.hrl.LitaAgentHRL", days=6, seats=1)
    plain, apart = played(setup), played(isolate(setup))
    assert first_difference(plain[0], apart[0]) is None


@pytest.mark.parametrize("name", ["Watches", "Shares"])
def test_an_isolated_agent_sees_what_it_would_see(agents, name):
    setup = world(f"{agents}.{name}", seats=3)
    plain, apart = played(setup), played(isolate(setup))
    assert plain[1]
    assert apart[1] == plain[1]
    assert first_difference(plain[0], apart[0]) is None


def test_a_lost_agent_is_reported_once_and_makes_no_offers(agents):
    _, errors, end = played(isolate(world(f"{agents}.Ends", seats=1)))
    assert [(where, kind) for _, where, kind, _ in errors] == [("before_step", "LostError")]
    assert sum(end.n_errors.values()) == 1


def test_a_hanging_agent_is_given_up(agents):
    began = time.monotonic()
    _, errors, _ = played(isolate(world(f"{agents}.Hangs", seats=1)))
    assert [(where, kind) for _, where, kind, _ in errors] == [("propose", "LostError")]
    assert time.monotonic() - began < 300


@pytest.mark.parametrize(
    ("name", "words"), [("RaisesInConstructor", "not today"), ("Missing", "Missing"), ("lost.Module", "lost")]
)
def test_an_agent_that_cannot_be_made_leaves_a_silent_seat(agents, name, words):
    _, errors, _ = played(isolate(world(f"{agents}.{name}", seats=1)))
    [(_, where, kind, text)] = errors
    assert (where, kind) == ("load", "LostError")
    assert words in text


def test_files_that_parameters_name_are_shown(agents, tmp_path):
    weights = tmp_path / "weights.txt"
    weights.write_text("42")
    spec = AgentSpec(f"{agents}.Loads", {"weights": str(weights)})
    _, errors, _ = played(isolate(world(spec, seats=1)))
    assert {text for *_, text in errors} == {"42"}


def test_processes_end_with_their_world(agents, monkeypatch):
    started = []
    make = isolated_agent.SeatProcess

    def watched(*arguments):
        process = make(*arguments)
        started.append(process._times._file)
        return process

    monkeypatch.setattr(isolated_agent, "SeatProcess", watched)
    played(isolate(world("scml.std.agents.greedy.GreedyStdAgent", seats=1)))
    assert started
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and any(is_alive(file) for file in started):
        time.sleep(0.05)
    assert not any(is_alive(file) for file in started)


def is_alive(file):
    try:
        return bool(os.pread(file, 10, 0))
    except OSError:
        return False


def test_scml_s_own_engine_is_refused():
    with pytest.raises(ConfigurationError, match="fast one"):
        run_world(isolate(world("scml.std.agents.greedy.GreedyStdAgent")), engine="scml")


def test_a_setup_with_isolated_seats_is_plain_data():
    setup = isolate(world("scml.std.agents.greedy.GreedyStdAgent"))
    assert type(setup).from_dict(json.loads(json.dumps(setup.to_dict()))) == setup
