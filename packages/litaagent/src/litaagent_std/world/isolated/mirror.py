"""What an isolated agent sees: the engine's own interface classes, filled with what the world sends.

The process of an isolated agent runs `serve`. Nothing of the world is there but what its public interface shows: the
constants of the world, the values of the day, the agent's contracts, and its negotiations.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from negmas.negotiators.common import NegotiatorEntry
from negmas.sao import ResponseType, SAOResponse
from negmas.situated import BulletinBoard
from scml.oneshot.agent import OneShotSyncAgent
from scml.oneshot.common import FinancialReport, NegotiationDetails

from apexrl.runs.errors import safe_text
from litaagent_std.world.events import NegotiationRef
from litaagent_std.world.fast.contracts import make_contract
from litaagent_std.world.fast.interface.agenda import Agenda, relative_times
from litaagent_std.world.fast.interface.awi import LeanAWI
from litaagent_std.world.fast.interface.facade import WorldFacade
from litaagent_std.world.fast.interface.mechanism import MechanismView
from litaagent_std.world.fast.interface.proxies import LeanState, fresh_state, make_negotiator, make_nmi, snapshot
from litaagent_std.world.fast.interface.ufun import LeanUFun
from litaagent_std.world.fast.negotiation import Side
from litaagent_std.world.fast.roster import make_ufun_factory
from litaagent_std.world.fast.seats import Seat
from litaagent_std.world.fast.turns import chained_turn
from litaagent_std.world.isolated.codec import decode, encode, receive, send
from litaagent_std.world.reproducible.streams import Stream, switch
from litaagent_std.world.rules.contracts import annotation_of
from litaagent_std.world.setup import AgentSpec, Factory

__all__ = ["STATE_FIELDS", "serve"]

STATE_FIELDS: Final = (
    "running",
    "waiting",
    "started",
    "step",
    "time",
    "relative_time",
    "broken",
    "timedout",
    "has_error",
    "error_details",
    "erred_negotiator",
    "erred_agent",
    "agreement",
    "current_offer",
    "current_proposer",
    "n_acceptances",
    "new_offers",
    "new_offerer_agents",
    "new_data",
    "left_negotiators",
    "last_negotiator",
    "current_data",
)
"""The fields of a negotiation's state, in the order of messages."""

_ANY: Final = 1 << 30  # the world's messages are trusted


def serve(connection: socket.socket) -> None:
    """Answer the world's messages until it closes the connection."""
    seats: dict[int, _MirroredSeat] = {}
    switch(Stream.from_key(0, "between calls"))
    while True:
        try:
            message = receive(connection, _ANY)
        except (OSError, EOFError):
            return
        try:
            answer = {"value": encode(_handle(seats, message))}
        except Exception as error:  # an agent may raise anything
            answer = {"error": [type(error).__name__, safe_text(error), isinstance(error, TypeError)]}
        send(connection, answer | {"number": message["number"]})


def _handle(seats: dict[int, _MirroredSeat], message: dict[str, Any]) -> Any:  # noqa: ANN401 - any answer
    if "shape" in message:
        return shape_of(AgentSpec(message["shape"]).load())
    if "load" in message:
        seats[message["seat"]] = _MirroredSeat(decode(message["load"]))
        return None
    return seats[message["seat"]].call(message)


def shape_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - an agent's class
    """Describe how the world has to ask agents of a class."""
    seat = Seat.__new__(Seat)
    seat.index, seat.agent = -1, object.__new__(kind)
    seat.inspect_agent()
    own = [name for name in ("on_negotiation_success", "on_negotiation_failure") if _is_own(kind, name)]
    return {
        "module": kind.__module__,
        "qualname": kind.__qualname__,
        "name": kind.__name__,
        "sync": seat.is_sync and issubclass(kind, OneShotSyncAgent),
        "chained": seat.turn is chained_turn,
        "callbacks": sorted(seat.callbacks),
        "own": own + (["on_negotiation_end"] if seat.end_callback == "custom" else []),
    }


def _is_own(kind: type, name: str) -> bool:
    method = getattr(kind, name, None)
    return method is not None and not method.__module__.startswith("scml.oneshot.agent")


class _MirrorWorld(WorldFacade):
    """What the agent-world interface asks of the world, without the world."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.n_steps = facts["n_steps"]
        self.horizon = facts["horizon"]
        self.n_products = facts["n_products"]
        self.max_n_lines = facts["max_n_lines"]
        self.production_capacity = facts["production_capacity"]
        self.catalog_prices = facts["catalog_prices"]
        self.suppliers = facts["suppliers"]
        self.consumers = facts["consumers"]
        self.is_bankrupt = dict.fromkeys(facts["agents"], False)
        self.agents = dict.fromkeys(facts["agents"])
        self.current_step = 0
        self.own_scores: dict[str, float] = {}
        self.bulletin_board = BulletinBoard()
        for section, content in facts["board"].items():
            self.bulletin_board.add_section(section)
            self.bulletin_board.data[section].update(content)

    @property
    def params(self) -> dict[str, Any]:
        """The world's parameters, as scml names them."""
        return {"n_steps": self.n_steps, "time_limit": self.time_limit, "negotiation_speed": None} | {
            "default_signing_delay": self.default_signing_delay
        }

    def scores(self) -> dict[str, float]:
        """Return the agent's own score; those of others are not public."""
        return self.own_scores

    def publish(self, section: str, content: Mapping[str, Any]) -> None:
        """Add to the bulletin board."""
        board = self.bulletin_board.data
        if section != "reports":
            board[section].update(content)
            return
        for day, reports in content.items():
            made = {agent: FinancialReport(**report) for agent, report in reports.items()}
            board["reports_time"][str(day)] = made
            for agent, report in made.items():
                board["reports_agent"].setdefault(agent, {})[day] = report


class _Owner:
    """The seat of a partner, of which only the id is known."""

    def __init__(self, name: str) -> None:
        self.id = name


class _MirrorNegotiation(MechanismView):
    """A negotiation of the agent, as the world last sent it."""

    __slots__ = ("agenda", "annotation", "id", "nmi", "ref", "sides", "state", "trace_")

    def __init__(self, ref: NegotiationRef, agenda: Agenda, sides: tuple[Any, Any]) -> None:
        self.ref = ref
        self.agenda = agenda
        self.id = f"{ref.day}:{ref.caller}-{ref.partner}"
        self.annotation = annotation_of(ref.buyer, ref.seller, ref.caller, ref.product, ref.day)
        self.sides = sides
        self.state = fresh_state()
        self.trace_ = []
        self.nmi = make_nmi(self, agenda.nmi_values, self.annotation)


class _MirroredSeat:
    """An isolated agent with what it sees.

    Args:
        load: Class path, parameters and random stream of the agent.
    """

    _world: _MirrorWorld

    def __init__(self, load: Mapping[str, Any]) -> None:
        self._stream = Stream.from_parts("seat", tuple(int(part) for part in load["stream"]))
        agent_type = AgentSpec(load["path"]).load()
        outside = switch(self._stream)
        try:
            self._agent: Any = agent_type(**load["params"])
        finally:
            switch(outside)
        self._negotiations: dict[str, _MirrorNegotiation] = {}
        self._sides: dict[str, Side] = {}
        self._ufun_values: dict[str, Any] = {}
        self._agendas: tuple[Agenda, Agenda] | None = None

    # -- what the world sends

    def call(self, message: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any answer of the agent
        """Take over what has changed in the world, and call the agent."""
        if "world" in message:
            self._attach(decode(message["world"]))
        for event in message.get("events", ()):
            self._take_event(*decode(event))
        if "day" in message:
            self._update_day(decode(message["day"]))
        if "ufun" in message:
            self._ufun_values = decode(message["ufun"])
            self._set_ufun(self._ufun_values)
        if "world" in message:
            self._agent.connect_to_oneshot_adapter(self._seat.adapter)
        if "open" in message:
            self._open(decode(message["open"]))
        for pid, fields, made in decode(message.get("live", ())):
            negotiation = self._negotiations[pid]
            _fill(negotiation.state, fields)
            negotiation.trace_ += made
        method = message["call"]
        arguments = decode(message.get("arguments", {"d": []}))
        special = getattr(self, f"_call_{method}", None)
        return special(**arguments) if special else self._seat.agent_call(method, **self._with_state(arguments))

    def _attach(self, facts: Mapping[str, Any]) -> None:
        """Make the seat: the first message of a world holds its constants."""
        self._world = _MirrorWorld(facts)
        self._times = relative_times(facts["n_rounds"])
        self._n_rounds = facts["n_rounds"]
        profile = Factory(**facts["factory"]).profile()
        seat = self._seat = Seat(
            facts["index"], self._agent, facts["name"], self._stream, profile, facts["initial_balance"]
        )
        seat.awi = LeanAWI(self._world, seat.adapter, profile)
        seat.ufun_factory = make_ufun_factory(seat, self._world.suppliers, self._world.consumers)
        seat.adapter._awi = seat.awi
        seat.adapter.make_lean_ufun = self._remake_ufun

    def _update_day(self, values: dict[str, Any]) -> None:
        awi, world = self._seat.awi, self._world
        for section, content in values.pop("published", {}).items():
            world.publish(section, content)
        for agent in values.pop("bankrupt", ()):
            world.is_bankrupt[agent] = True
        if "score" in values:
            world.own_scores = {self._seat.id: values.pop("score")}
        if "issues" in values:
            bought, sold = (
                Agenda(quantities, days, prices, self._n_rounds, self._times)
                for quantities, days, prices in values.pop("issues")
            )
            self._agendas = bought, sold
            awi.current_input_issues, awi.current_output_issues = bought.issues, sold.issues
        for name, value in values.items():
            setattr(awi, name, value)
        world.current_step = awi.current_step

    def _set_ufun(self, values: dict[str, Any]) -> LeanUFun:
        seat = self._seat
        seat.ufun = seat.ufun_factory.make(**values)
        seat.adapter._preferences = seat.ufun
        if seat.has_preference_callbacks:
            seat.agent.ufun = seat.ufun
        else:
            seat.agent._preferences = seat.ufun
        return seat.ufun

    def _remake_ufun(self) -> LeanUFun:
        """Make the utility function again with today's issues; agents may ask for it."""
        inputs, outputs = self._seat.awi.current_input_issues, self._seat.awi.current_output_issues
        now = {
            "current_step": self._seat.awi.current_step,
            "time_range": inputs[1].values,
            "input_qrange": inputs[0].values,
            "input_prange": inputs[2].values,
            "output_qrange": outputs[0].values,
            "output_prange": outputs[2].values,
        }
        return self._set_ufun(self._ufun_values | now)

    # -- negotiations

    def _open(self, opened: Mapping[str, Any]) -> None:
        """Make today's negotiations, in the world's order."""
        seat, agent = self._seat, self._agent
        if self._agendas is None:
            raise RuntimeError("negotiations were opened before there were issues; the world sends issues first")
        self._negotiations, self._sides = {}, {}
        seat.buying, seat.selling = {}, {}
        seat.awi.open_negotiations(seat.buying, seat.selling)
        seat.n_active = 0
        agent._negotiators.clear()
        for pid, ref in opened["negotiators"]:
            negotiator = make_negotiator(pid, agent, seat.adapter)
            agent._negotiators[pid] = NegotiatorEntry(negotiator, None)
            if ref is not None:
                self._open_one(pid, NegotiationRef(*ref), negotiator)
        for pid in opened["buying"]:
            seat.buying[pid] = self._details(pid)
        for pid in opened["selling"]:
            seat.selling[pid] = self._details(pid)

    def _open_one(self, pid: str, ref: NegotiationRef, negotiator: Any) -> None:  # noqa: ANN401 - negmas'
        seat = self._seat
        agendas = self._agendas or ()
        agenda = agendas[0 if ref.product == seat.level else 1]
        own = Side(seat, pid, negotiator)
        partner = Side(_Owner(pid), seat.id, make_negotiator(seat.id, None, None))  # type: ignore[arg-type]  # id only
        sides = (own, partner) if ref.caller == seat.id else (partner, own)
        negotiation = _MirrorNegotiation(ref, agenda, sides)
        negotiator.__dict__["nmi"] = negotiator.__dict__["_nmi"] = negotiation.nmi
        self._negotiations[pid], self._sides[pid] = negotiation, own
        seat.n_active += 1

    def _details(self, pid: str) -> NegotiationDetails:
        negotiation = self._negotiations[pid]
        ref = negotiation.ref
        return NegotiationDetails(ref.buyer, ref.seller, ref.product, negotiation.nmi)

    def _take_event(self, kind: str, pid: str, fields: list[Any], terms: Any) -> None:  # noqa: ANN401 - as sent
        """Take over an event that the agent's class has no callback for."""
        _fill(self._negotiations[pid].state, fields)
        handlers: dict[str, Callable[..., None]] = {
            "end": self._leave,
            "success": self._register,
            "failure": self._register_failure,
        }
        handlers[kind](pid, *terms)

    def _leave(self, pid: str) -> None:
        self._seat.end_negotiation(self._sides[pid], self._negotiations[pid].state)

    def _register(self, pid: str, quantity: int, day: int, unit_price: int) -> None:
        seat, ref = self._seat, self._negotiations[pid].ref
        if seat.id == ref.buyer:
            seat.awi.register_supply(pid, quantity, unit_price, day)
            seat.ufun.register_supply(quantity, unit_price, day)
            seat.buying.pop(pid, None)
        else:
            seat.awi.register_sale(pid, quantity, unit_price, day)
            seat.ufun.register_sale(quantity, unit_price, day)
            seat.selling.pop(pid, None)

    def _register_failure(self, pid: str) -> None:
        seat, ref = self._seat, self._negotiations[pid].ref
        failures, running = (
            (seat.ufun._registered_supply_failures, seat.buying)
            if seat.id == ref.buyer
            else (seat.ufun._registered_sale_failures, seat.selling)
        )
        failures.add(pid)
        seat.ufun._invalidate_limit_cache()
        running.pop(pid, None)

    # -- calls whose arguments are objects

    def _with_state(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Replace the mark of a negotiation's state by a copy of it."""
        if "state" in arguments:
            arguments["state"] = snapshot(self._negotiations[arguments["negotiator_id"]].state)
        return arguments

    def _call_before_step(self) -> None:
        self._seat.awi.forget_past()
        self._seat.agent_call("before_step")

    def _call_counter_all(self, offers: dict[str, Any], states: dict[str, list[Any] | None]) -> Any:  # noqa: ANN401
        # a state is sent only where it is not the negotiation's present one
        shown = {
            pid: snapshot(self._negotiations[pid].state) if fields is None else _fill(fresh_state(), fields)
            for pid, fields in states.items()
        }
        replies = self._seat.agent_call("counter_all", offers=offers, states=shown)
        for partner in self._agent._negotiators:  # as the engine does, in the agent's own dictionary
            if partner not in replies:
                replies[partner] = SAOResponse(ResponseType.END_NEGOTIATION, None)
        return replies

    def _call_on_negotiation_end(self, negotiator_id: str, state: object) -> None:
        negotiation = self._negotiations[negotiator_id]
        try:
            self._seat.agent_call("on_negotiation_end", negotiator_id=negotiator_id, state=snapshot(negotiation.state))
        finally:
            self._seat.forget_negotiation(self._sides[negotiator_id])

    def _call_on_negotiation_success(self, pid: str, terms: tuple[int, int, int]) -> None:
        self._register(pid, *terms)
        negotiation, today = self._negotiations[pid], self._seat.awi.current_step
        contract = make_contract(negotiation, terms, today)  # type: ignore[arg-type]  # it has what is needed
        try:
            self._seat.agent_call("on_negotiation_success", contract, negotiation.nmi)
        finally:
            ref = negotiation.ref
            contract.signatures = {ref.caller: ref.caller, ref.partner: ref.partner}
            contract.signed_at = today

    def _call_on_negotiation_failure(self, pid: str) -> None:
        self._register_failure(pid)
        negotiation = self._negotiations[pid]
        ref = negotiation.ref
        partners, annotation = [ref.caller, ref.partner], dict(negotiation.annotation)
        self._seat.agent_call("on_negotiation_failure", partners, annotation, negotiation.nmi, negotiation.state)


def _fill(state: LeanState, fields: list[Any]) -> LeanState:
    for name, value in zip(STATE_FIELDS, fields, strict=True):
        setattr(state, name, value)
    state.left_negotiators = set(state.left_negotiators)
    return state
