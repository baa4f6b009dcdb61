"""Light proxies of the negmas objects that agents get: state, NMI and negotiator.

Each is a subclass of negmas' own class, so `isinstance` and attribute access work as agents expect. It is built
without the constructors of negmas, and constants are attributes of the class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from negmas.sao import SAONMI, ControlledSAONegotiator, SAOState

if TYPE_CHECKING:
    from negmas.outcomes import Issue, OutcomeSpace

    from litaagent_std.world.fast.interface.mechanism import MechanismView

INFINITY = float("inf")


class LeanState(SAOState):  # type: ignore[misc]
    """The state of a negotiation between two agents.

    Fields that never change in a negotiation of two agents are constants of the class.
    """

    __slots__ = ()

    ended_without_starting = False
    results = None
    n_negotiators = 2
    last_thread = ""
    current_proposer_agent = None

    @property
    def threads(self) -> dict[str, Any]:
        """Threads of negotiation: none in the alternating offers protocol."""
        return {}

    __hash__ = SAOState.__hash__

    def __copy__(self) -> LeanState:
        return snapshot(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> LeanState:
        copy = snapshot(self)
        copy.new_offers = list(self.new_offers)
        copy.new_offerer_agents = list(self.new_offerer_agents)
        copy.new_data = list(self.new_data)
        copy.left_negotiators = set(self.left_negotiators)
        memo[id(self)] = copy
        return copy


_new_state = LeanState.__new__


def fresh_state() -> LeanState:
    """Make the state of a negotiation that has not started."""
    state = _new_state(LeanState)
    state.running = state.waiting = state.started = False
    state.step = 0
    state.time = 0.0
    state.relative_time = 0.0
    state.broken = state.timedout = state.has_error = False
    state.error_details = state.erred_negotiator = state.erred_agent = ""
    state.agreement = state.current_offer = state.current_proposer = state.current_data = None
    state.n_acceptances = 0
    state.new_offers = []
    state.new_offerer_agents = []
    state.new_data = []
    state.left_negotiators = set()
    state.last_negotiator = None
    return state


def snapshot(state: LeanState) -> LeanState:
    """Copy a state for an agent, which may keep and change its copy."""
    copy = _new_state(LeanState)
    copy.running = state.running
    copy.waiting = state.waiting
    copy.started = state.started
    copy.step = state.step
    copy.time = state.time
    copy.relative_time = state.relative_time
    copy.broken = state.broken
    copy.timedout = state.timedout
    copy.has_error = state.has_error
    copy.error_details = state.error_details
    copy.erred_negotiator = state.erred_negotiator
    copy.erred_agent = state.erred_agent
    copy.agreement = state.agreement
    copy.current_offer = state.current_offer
    copy.current_proposer = state.current_proposer
    copy.n_acceptances = state.n_acceptances
    copy.new_offers = state.new_offers
    copy.new_offerer_agents = state.new_offerer_agents
    copy.new_data = state.new_data
    copy.left_negotiators = state.left_negotiators
    copy.last_negotiator = state.last_negotiator
    copy.current_data = state.current_data
    return copy


class LeanNMI(SAONMI):  # type: ignore[misc]
    """The negotiator-mechanism interface; values that vary are in the instance's dict."""

    id: str = ""
    n_outcomes: int = 0
    outcome_space: OutcomeSpace | None = None
    issues: tuple[Issue, ...] = ()
    annotation: dict[str, Any] | None = None
    state: LeanState | None = None
    shared_n_steps: int | None = None
    n_steps: int | None = None
    step_time_limit: float = INFINITY
    _mechanism: MechanismView | None = None

    shared_time_limit: float = INFINITY
    time_limit: float = INFINITY
    private_time_limit = INFINITY
    private_n_steps = None
    pend = 0
    pend_per_second = 0
    negotiator_time_limit = INFINITY
    dynamic_entry = False
    max_n_negotiators = None
    end_on_no_response = True
    one_offer_per_step = False
    offering_is_accepting = True
    allow_none_with_data = True
    allow_negotiators_to_leave = True
    atomic_steps = False
    n_negotiators = 2

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


_new_nmi = LeanNMI.__new__


def make_nmi(negotiation: MechanismView, shared: dict[str, Any], annotation: dict[str, Any]) -> LeanNMI:
    """Make the NMI of a negotiation.

    Args:
        negotiation: The negotiation, which replaces negmas' mechanism.
        shared: Values that all negotiations about the product share today.
        annotation: The negotiation's annotation.
    """
    nmi = _new_nmi(LeanNMI)
    values = nmi.__dict__
    values.update(shared)
    values["id"] = negotiation.id
    values["annotation"] = annotation
    values["state"] = negotiation.state
    values["_mechanism"] = negotiation
    return nmi


class LeanNegotiator(ControlledSAONegotiator):  # type: ignore[misc]
    """A controller's negotiator in one negotiation; the engine calls the controller directly."""

    nmi: LeanNMI | None = None
    _nmi: LeanNMI | None = None
    id = ""
    name = ""
    owner = None
    _preferences = None
    _init_preferences = None
    _role = "negotiator"
    _initial_state = None
    _initialized_pref_id = None
    _Negotiator__parent = None
    _NamedObject__type_name = None
    _Entity__type_postfix = ""

    __getattribute__ = object.__getattribute__

    @property
    def capabilities(self) -> dict[str, Any]:
        """The negotiator's capabilities, as negmas lists them."""
        return {
            "enter": True,
            "leave": True,
            "ultimatum": True,
            "respond": True,
            "propose": True,
            "max-proposals": 1,
        }

    @property
    def parent(self) -> Any:  # noqa: ANN401 - any negmas controller
        """The agent that controls this negotiator."""
        return self._Negotiator__parent

    @property
    def private_info(self) -> dict[str, Any]:
        """Private information of the negotiator: none."""
        return {}

    annotation = private_info


_new_negotiator = LeanNegotiator.__new__


def make_negotiator(partner: str, controller: object, owner: object) -> LeanNegotiator:
    """Make the negotiator of `controller` in its negotiation with `partner`, whose id it gets."""
    negotiator = _new_negotiator(LeanNegotiator)
    values = negotiator.__dict__
    values["id"] = values["name"] = partner
    values["_NamedObject__uuid"] = values["_NamedObject__name"] = partner
    values["owner"] = values["_Negotiator__owner"] = owner
    values["_Negotiator__parent"] = controller
    return negotiator
