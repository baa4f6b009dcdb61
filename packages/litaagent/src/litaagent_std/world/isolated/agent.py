"""The class that stands for an isolated agent in the world: it forwards every call to the agent's own process.

Exceptions of the agent come back as exceptions. If its process is lost, because it ended, was too slow or broke the
rules, that is reported once as an exception of the agent, and its seat makes no offers from then on.
"""

from __future__ import annotations

import functools
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict
from operator import attrgetter
from typing import Any, Final
from weakref import WeakKeyDictionary

from negmas.sao import ResponseType, SAOState
from scml.oneshot.common import FinancialReport
from scml.std.agent import StdAgent, StdSyncAgent

from litaagent_std.world.events import Outcome
from litaagent_std.world.fast.interface.awi import LeanAWI
from litaagent_std.world.isolated.codec import decode, encode
from litaagent_std.world.isolated.mirror import STATE_FIELDS
from litaagent_std.world.isolated.process import LostError, SeatProcess
from litaagent_std.world.isolated.sandbox import Limits
from litaagent_std.world.reproducible.isolation import package_of
from litaagent_std.world.reproducible.streams import active

__all__ = ["StandIn", "stand_in"]

_LIMITS: Final = Limits()
_DAILY: Final = (
    "current_step",
    "relative_time",
    "current_balance",
    "current_inventory_input",
    "current_exogenous_input_quantity",
    "current_exogenous_input_price",
    "current_exogenous_output_quantity",
    "current_exogenous_output_price",
    "_stock",
    "current_disposal_cost",
    "current_storage_cost",
    "current_shortfall_penalty",
    "exogenous_contract_summary",
)
"""Values of the agent-world interface that the world sets day by day."""

_UFUN: Final = (
    *("ex_qin", "ex_pin", "ex_qout", "ex_pout", "disposal_cost", "storage_cost", "shortfall_penalty"),
    *("input_penalty_scale", "storage_penalty_scale", "output_penalty_scale", "current_step", "time_range"),
    *("input_qrange", "input_prange", "output_qrange", "output_prange", "current_balance", "inventory_in"),
)
"""Attributes of a utility function that change from day to day."""

_BETWEEN: Final = frozenset({"init", "reset", "before_step", "step"})
"""Calls outside negotiations: the values of the day change before these alone."""

_LISTS: Final = frozenset({"new_offers", "new_offerer_agents", "new_data", "left_negotiators"})
_plain_fields = attrgetter(*(name for name in STATE_FIELDS if name not in _LISTS))
_BOARD: Final = ("trading_prices", "exogenous_contracts_summary", "breaches")
_processes: WeakKeyDictionary[object, dict[str, SeatProcess]] = WeakKeyDictionary()


def stand_in(path: str) -> type:
    """Return the class that stands for the class at a path; the agent's module is imported in another process."""
    return _stand_in(path, os.getpid())


@functools.cache
def _stand_in(path: str, pid: int) -> type:
    module, _, name = path.replace(":", ".").rpartition(".")
    shape: dict[str, Any] = {"module": module, "qualname": name, "name": name}
    load_error = None
    try:
        process = SeatProcess(_LIMITS)
        try:
            shape = _checked(_value(process.ask({"shape": path}, _LIMITS.load_seconds)), shape)
        finally:
            process.end()
    except Exception as error:  # whatever the agent's module raises; the class says so when it plays
        load_error = f"{type(error).__name__}: {error}"
        if os.geteuid() == 0 and type(error).__name__ in ("ModuleNotFoundError", "PermissionError"):
            load_error += "; root's isolated agents play as nobody: others must be able to read their folder"
    base = _SyncStandIn if shape.get("sync") else _ChainedStandIn if shape.get("chained") else _PlainStandIn
    methods = {callback: _forwarded(callback) for callback in shape.get("callbacks", ())}
    identity = {"__module__": shape["module"], "__qualname__": shape["qualname"], "__doc__": base.__doc__}
    facts = {"path": path, "load_error": load_error, "own_callbacks": frozenset(shape.get("own", ()))}
    metaclass: Any = type(base)
    made: type = metaclass(shape["name"], (base,), methods | identity | facts)
    return made


_OPTIONAL: Final = frozenset(
    {"on_negotiation_start", "on_round_start", "on_round_end", "on_partner_proposal", "on_partner_response"}
)


def _checked(shape: Any, default: Mapping[str, str]) -> dict[str, Any]:  # noqa: ANN401 - from the agent's process
    """Return a shape without what the world would not expect; names that are no names are replaced."""
    shape = shape if isinstance(shape, dict) else {}
    names = {
        key: text if isinstance(text := shape.get(key), str) and len(text) < 200 and _is_name(text) else default[key]
        for key in ("module", "qualname", "name")
    }
    lists = {key: [str(item) for item in shape.get(key) or () if isinstance(item, str)] for key in ("callbacks", "own")}
    return {
        **names,
        "sync": shape.get("sync") is True,
        "chained": shape.get("chained") is True,
        "callbacks": [name for name in lists["callbacks"] if name in _OPTIONAL],
        "own": lists["own"],
    }


def _is_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


def _value(answer: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any answer
    """Return the value of an answer, or raise the agent's exception.

    Raises:
        LostError: If the answer has another form.
        Exception: As the agent raised it; a class of its own with the name of the agent's.
    """
    try:
        if "error" not in answer:
            return decode(answer["value"])
        kind, text, is_type_error = answer["error"]
        base = TypeError if is_type_error is True else Exception
        error = type(str(kind).replace("\0", "?")[:100] or "Exception", (base,), {})(str(text)[:2000])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, AttributeError, MemoryError) as malformed:
        raise LostError(f"it sent an answer that cannot be read: {type(malformed).__name__}") from malformed
    raise error


def _forwarded(callback: str) -> Callable[..., Any]:
    def forward(self: StandIn, **arguments: Any) -> Any:  # noqa: ANN401 - as negmas'
        return self.forward(callback, **arguments)

    forward.__name__ = callback
    return forward


class StandIn(StdAgent):  # type: ignore[misc]
    """Stands for an isolated agent.

    Attributes:
        is_isolated: True: the engine treats an exception here as the agent's own matter.
        path: Path of the agent's class.
        load_error: Why the class could not be loaded; None if it was.
        own_callbacks: Callbacks that the agent's class has; others are not forwarded on their own.
        lost: Why the agent's process was given up; None while it plays.
    """

    is_isolated = True
    path = ""
    load_error: str | None = None
    own_callbacks: frozenset[str] = frozenset()

    def __init__(self, **params: Any) -> None:  # noqa: ANN401 - the agent's
        super().__init__()
        self.lost: str | None = None
        self._notify_lost: Callable[[str, Exception], None] | None = None
        self._where = "load"
        self._process: SeatProcess | None = None
        self._started = False
        self._pending: list[Any] = []  # events that go with the next call
        self._sent_day: dict[str, Any] = {}
        self._sent_board = dict.fromkeys((*_BOARD, "reports_time"), 0)
        self._sent_ufun: Any = None
        self._open: dict[str, Any] = {}  # today's negotiations by partner
        self._sent_states: dict[str, tuple[Any, int]] = {}
        self._load(params)

    def _load(self, params: Mapping[str, Any]) -> None:
        stream = active()
        parts = stream.parts or [secrets.randbits(128) for _ in range(3)]
        message = {"path": self.path, "params": dict(params), "stream": [str(part) for part in parts]}
        try:
            if self.load_error is not None:
                raise LostError(self.load_error)
            inner = self.path.rpartition(".")[2]  # a path of integer_offers holds that of the agent
            package = package_of(inner.replace(":", ".") if ":" in inner else self.path)
            self._process = _process_of(stream.world, package, params)
            self._number = id(self)
            answer = self._process.ask({"load": encode(message), "seat": self._number}, _LIMITS.load_seconds)
            _value(answer)
        except LostError as error:
            self._lose(str(error))
        except Exception as error:  # whatever the agent's constructor raises; others in its process play on
            self.lost = f"{type(error).__name__}: {error}"[:2000]

    # -- what the engine calls

    def attach(self, notify_lost: Callable[[str, Exception], None]) -> None:
        """Set what is called if the agent's process is lost, with the call in which it was; at once if it is."""
        self._notify_lost = notify_lost
        if self.lost is not None:
            notify_lost(self._where, LostError(self.lost))

    def end(self) -> None:
        """End the agent's process: the world is over."""
        if self._process is not None:
            self._process.end()

    # -- callbacks

    def init(self) -> None:
        """Forward."""
        self.forward("init")

    def before_step(self) -> None:
        """Forward, with today's negotiations."""
        self._collect_negotiations()
        self.forward("before_step")

    def step(self) -> None:
        """Forward."""
        self.forward("step")

    def reset(self) -> None:
        """Reset the controller, here and there."""
        super().reset()
        if getattr(self, "_started", False):  # negmas resets a controller while it is constructed
            self.forward("reset")

    def on_negotiation_end(self, negotiator_id: str, state: SAOState) -> None:
        """Forward, or send it with the next call."""
        super().on_negotiation_end(negotiator_id, state)
        if "on_negotiation_end" in self.own_callbacks:
            self.forward("on_negotiation_end", negotiator_id=negotiator_id, state=None)
        else:
            self._remember("end", negotiator_id, ())

    def on_negotiation_success(self, contract: Any, mechanism: Any) -> None:  # noqa: ANN401 - negmas'
        """Forward, or send it with the next call."""
        [pid] = [partner for partner in contract.partners if partner != self.id]
        agreement = contract.agreement
        terms = (agreement["quantity"], agreement["time"], agreement["unit_price"])
        if "on_negotiation_success" in self.own_callbacks:
            self.forward("on_negotiation_success", pid=pid, terms=terms)
        else:
            self._remember("success", pid, terms)

    def on_negotiation_failure(self, partners: list[str], annotation: Any, mechanism: Any, state: Any) -> None:  # noqa: ANN401
        """Forward, or send it with the next call."""
        [pid] = [partner for partner in partners if partner != self.id]
        if "on_negotiation_failure" in self.own_callbacks:
            self.forward("on_negotiation_failure", pid=pid)
        else:
            self._remember("failure", pid, ())

    # -- forwarding

    def forward(self, method: str, *, default: Any = None, **arguments: Any) -> Any:  # noqa: ANN401 - any call
        """Call a method of the agent.

        Args:
            method: The method.
            default: What a lost agent answers.
            arguments: Its arguments; a state is sent with the negotiations.

        Raises:
            Exception: As the agent raised it.
        """
        if self.lost is not None or self._process is None:
            return default
        if "state" in arguments:
            arguments["state"] = None
        self._where = method
        try:
            changes = self._changes(between=method in _BETWEEN)
            message = {"call": method, "seat": self._number, "arguments": encode(arguments), **changes}
            return _value(self._process.ask(message, _LIMITS.call_seconds))
        except LostError as error:
            self._lose(str(error))
            return default

    def _lose(self, why: str) -> None:
        self.lost = why[:2000]
        if self._process is not None:
            self._process.lose(self.lost)
        if self._notify_lost is not None:
            self._notify_lost(self._where, LostError(self.lost))

    def _remember(self, kind: str, pid: str, terms: tuple[Any, ...]) -> None:
        if self.lost is None:
            self._pending.append(encode((kind, pid, self._state_fields(pid), terms)))

    def _state_fields(self, pid: str) -> list[Any]:
        return [getattr(self._open[pid].state, name) for name in STATE_FIELDS]

    def _changes(self, between: bool) -> dict[str, Any]:
        """Collect what has changed in the world since the last call; `between`: the call is outside negotiations."""
        awi: LeanAWI = self._awi
        changes: dict[str, Any] = {}
        if not self._started:
            self._started = True
            changes["world"] = encode(self._world_facts(awi))
        if self._pending:
            changes["events"], self._pending = self._pending, []
        if between and (day := self._day_values(awi)):
            changes["day"] = encode(day)
        if self._preferences is not self._sent_ufun:
            self._sent_ufun = self._preferences
            changes["ufun"] = encode({name: self._preferences.__dict__[name] for name in _UFUN})
        if self._opened is not None:
            changes["open"], self._opened = self._opened, None
        live = self._live()
        if live:
            changes["live"] = live
        return changes

    _opened: Any = None

    def _world_facts(self, awi: LeanAWI) -> dict[str, Any]:
        world = awi._world
        [seat] = [seat for seat in world.seats if seat.agent is self]  # type: ignore[attr-defined]
        return {
            "n_steps": world.n_steps,
            "horizon": world.horizon,
            "n_products": world.n_products,
            "max_n_lines": world.max_n_lines,
            "production_capacity": list(world.production_capacity),
            "catalog_prices": world.catalog_prices,
            "suppliers": [list(ids) for ids in world.suppliers],
            "consumers": [list(ids) for ids in world.consumers],
            "agents": list(world.is_bankrupt),
            "n_rounds": world.setup.n_rounds,
            "index": seat.index,
            "name": seat.id,
            "initial_balance": seat.initial_balance,
            "factory": asdict(world.setup.factories[seat.index]),
            "board": {
                section: dict(content) if section == "settings" else {}
                for section, content in world.bulletin_board.data.items()  # type: ignore[attr-defined]
            },
        }

    def _day_values(self, awi: LeanAWI) -> dict[str, Any]:
        """Return the values of the day that differ from those sent."""
        world: Any = awi._world
        now = {name: getattr(awi, name) for name in _DAILY}
        now["issues"] = tuple(
            tuple(tuple(issue.values) for issue in issues)
            for issues in (awi.current_input_issues, awi.current_output_issues)
        )
        now["score"] = awi.current_score
        sent = self._sent_day
        changed = {name: value for name, value in now.items() if name not in sent or sent[name] != value}
        if not changed:
            return {}
        self._sent_day = now | {"exogenous_contract_summary": list(now["exogenous_contract_summary"])}
        changed["trading_prices"] = awi.trading_prices
        changed["bankrupt"] = [name for name, is_bankrupt in world.is_bankrupt.items() if is_bankrupt]
        changed["published"] = self._published(world.bulletin_board.data)
        return changed

    def _published(self, board: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return what is new on the bulletin board; sections only grow."""
        new: dict[str, Any] = {}
        for section, sent in self._sent_board.items():
            content = board[section]
            if len(content) > sent:
                self._sent_board[section] = len(content)
                new[section] = dict(list(content.items())[sent:])
        if "reports_time" in new:
            new["reports"] = {
                int(day): {agent: _plain_report(report) for agent, report in reports.items()}
                for day, reports in new.pop("reports_time").items()
            }
        return new

    def _collect_negotiations(self) -> None:
        """Note today's negotiations, in the engine's order."""
        negotiators: list[tuple[str, Any]] = []
        self._open, self._sent_states = {}, {}
        for pid, entry in self._negotiators.items():
            nmi = entry[0].nmi
            if nmi is not None:
                negotiation = nmi._mechanism
                ref = negotiation.ref
                self._open[pid] = negotiation
                ids = (ref.day, ref.index, ref.caller, ref.partner, ref.buyer, ref.seller, ref.product)
                negotiators.append((pid, ids))
            else:
                negotiators.append((pid, None))
        awi = self._awi
        self._opened = encode({"negotiators": negotiators, "buying": list(awi._buying), "selling": list(awi._selling)})

    def _live(self) -> list[Any]:
        """Return the states that have changed, with the offers that are new."""
        changed = []
        for pid, negotiation in self._open.items():
            state, trace = negotiation.state, negotiation.trace_
            # the lists of a state only grow within a round, so their lengths tell whether they have changed
            mark = (*_plain_fields(state), len(state.new_offers), len(state.left_negotiators), len(trace))
            sent, n_made = self._sent_states.get(pid, (None, 0))
            if mark != sent:
                self._sent_states[pid] = (mark, len(trace))
                changed.append(encode((pid, self._state_fields(pid), trace[n_made:])))
        return changed


def _plain_report(report: FinancialReport) -> dict[str, Any]:
    return {name: getattr(report, name) for name in type(report).__dataclass_fields__}


def _process_of(world: object | None, package: str, params: Mapping[str, Any]) -> SeatProcess:
    """Return the process of a package's agents in a world; agents outside any world have one each."""
    show = [os.path.abspath(text) for text in params.values() if isinstance(text, str) and os.path.exists(text)]
    if world is None:
        return SeatProcess(_LIMITS, show)
    processes = _processes.setdefault(world, {})
    if package not in processes:
        processes[package] = SeatProcess(_LIMITS, show)
    return processes[package]


class _PlainStandIn(StandIn):
    """Stands for an isolated agent that proposes and responds to each partner."""

    def propose(self, negotiator_id: str, state: SAOState) -> Outcome | None:
        """Forward."""
        offer: Outcome | None = self.forward("propose", negotiator_id=negotiator_id, state=state)
        return offer

    def respond(self, negotiator_id: str, state: SAOState, source: str | None = None) -> Any:  # noqa: ANN401
        """Forward."""
        end = ResponseType.END_NEGOTIATION
        return self.forward("respond", default=end, negotiator_id=negotiator_id, state=state, source=source)


class _ChainedStandIn(StandIn):
    """Stands for an isolated agent whose `propose` or `respond` have unusual parameters."""

    def propose(self, **arguments: Any) -> Any:  # noqa: ANN401 - as the engine asks
        """Forward."""
        return self.forward("propose", **arguments)

    def respond(self, **arguments: Any) -> Any:  # noqa: ANN401 - as the engine asks
        """Forward."""
        return self.forward("respond", default=ResponseType.END_NEGOTIATION, **arguments)


class _SyncStandIn(StandIn, StdSyncAgent):  # type: ignore[misc]
    """Stands for an isolated agent that decides for all its partners together."""

    def first_proposals(self) -> Any:  # noqa: ANN401 - agents return anything
        """Forward."""
        return self.forward("first_proposals", default={})

    def counter_all(self, offers: dict[str, Outcome | None], states: dict[str, SAOState]) -> Any:  # noqa: ANN401
        """Forward."""
        shown = {}
        for pid, state in states.items():
            own = [getattr(state, name) for name in STATE_FIELDS]
            shown[pid] = None if pid in self._open and own == self._state_fields(pid) else own
        return self.forward("counter_all", default={}, offers=offers, states=shown)
