"""A simple synchronous strategy, as a function of a decision and as an agent with the same behaviour."""

from typing import ClassVar

from negmas.sao import ResponseType, SAOResponse
from scml.std.agent import StdSyncAgent


def first_offers(partners, awi):
    return {partner: (3, awi.current_step, _price(partner, awi, 1.0)) for partner in partners}


def responses(offers, states, awi):
    replies = {}
    for partner, offer in offers.items():
        time = states[partner].relative_time
        if offer[0] <= 4 and offer[1] == awi.current_step and time > 0.4:
            replies[partner] = SAOResponse(ResponseType.ACCEPT_OFFER, offer)
        elif time < 0.8:
            offer = (2, awi.current_step, _price(partner, awi, 1 - time))
            replies[partner] = SAOResponse(ResponseType.REJECT_OFFER, offer)
    return replies


def _price(partner, awi, greed):
    selling = partner in awi.my_consumers
    issue = (awi.current_output_issues if selling else awi.current_input_issues)[2]
    share = greed if selling else 1 - greed
    return int(issue.min_value + share * (issue.max_value - issue.min_value))


class ExampleAgent(StdSyncAgent):
    """Its initials are those of ExternalAgent, so that factories bear the same ids."""

    def first_proposals(self):
        return first_offers(tuple(self.negotiators), self.awi)

    def counter_all(self, offers, states):
        return responses(offers, states, self.awi)


class ExposingAgent(ExampleAgent):
    """Writes down everything that its interface shows it."""

    notes: ClassVar[list] = []

    def init(self):
        super().init()
        self._note("init")

    def before_step(self):
        super().before_step()
        self._note("before_step")

    def step(self):
        super().step()
        self._note("step")

    def counter_all(self, offers, states):
        self._note("counter_all")
        return super().counter_all(offers, states)

    def on_negotiation_success(self, contract, mechanism):
        paper = (contract.agreement, contract.partners, contract.annotation, contract.concluded_at, contract.signed_at)
        self.notes.append((self.id, "success", repr(paper), repr(_plain(mechanism.state))))

    def on_negotiation_failure(self, partners, annotation, mechanism, state):
        self.notes.append((self.id, "failure", repr((partners, annotation)), repr(_plain(state))))

    def _note(self, when):
        awi = self.awi
        awi.loginfo_agent("noted")
        names = [name for name in dir(type(awi)) if not name.startswith("_") and name not in UNSHOWN]
        seen = {name: getattr(awi, name) for name in names}
        shown = {name: _plain(value) for name, value in seen.items() if not callable(value)}
        today = awi.current_step
        for name in ("total_sales", "total_supplies"):
            shown[name] = [
                (getattr(awi, f"{name}_at")(day), getattr(awi, f"{name}_until")(day), getattr(awi, f"{name}_from")(day))
                for day in range(today - 1, today + 4)
            ] + [getattr(awi, f"{name}_between")(today - 2, today + 2)]
        others = awi.my_suppliers + awi.my_consumers
        shown["others"] = [
            (other, bool(awi.is_bankrupt(other)), awi.is_system(other), _plain(awi.reports_of_agent(other)))
            for other in others
        ]
        shown["ufun"] = {name: _plain(getattr(self.ufun, name)) for name in UFUN}
        shown["ufun"]["reserved_value"] = float(self.ufun.reserved_value)
        shown["negotiators"] = [(pid, _plain(entry[0].nmi)) for pid, entry in self.negotiators.items()]
        shown["active"] = list(self.active_negotiators)
        self.notes.append((self.id, when, today, shown))


UNSHOWN = set(
    [
        "agent",
        "state",
        "settings",
        "params",
        "annotation",
        "relative_time",
        "initialized",
        "register_sale",
        "register_supply",
        "accepted_negotiation_requests",
        "negotiation_requests",
        "requested_negotiations",
        "running_negotiations",
        "unsigned_contracts",
        "running_mechanism_dicts",
    ]
)
UFUN = [
    "ex_qin",
    "ex_pin",
    "ex_qout",
    "ex_pout",
    "production_cost",
    "storage_cost",
    "shortfall_penalty",
    "time_range",
    "input_qrange",
    "input_prange",
    "output_qrange",
    "output_prange",
    "current_balance",
    "inventory_in",
    "n_lines",
    "n_input_negs",
    "n_output_negs",
    "suppliers",
    "consumers",
    "current_step",
    "input_penalty_scale",
    "output_penalty_scale",
    "storage_penalty_scale",
    "disposal_cost",
    "input_agent",
    "force_exogenous",
    "perishable",
    "agent_id",
]
STATE = [
    "running",
    "waiting",
    "started",
    "step",
    "time",
    "relative_time",
    "broken",
    "timedout",
    "agreement",
    "has_error",
    "current_offer",
    "current_proposer",
    "n_acceptances",
    "new_offers",
    "new_offerer_agents",
    "last_negotiator",
    "n_negotiators",
    "results",
    "error_details",
    "threads",
    "left_negotiators",
    "new_data",
    "current_data",
]
NMI = [
    "n_steps",
    "time_limit",
    "n_outcomes",
    "annotation",
    "n_negotiators",
    "negotiator_ids",
    "agent_ids",
    "trace",
    "extended_trace",
    "offers",
    "shared_n_steps",
    "end_on_no_response",
    "one_offer_per_step",
    "dynamic_entry",
    "pend",
]


def _plain(value):
    """Reduces a value to plain data that two engines can be compared by."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "breach_prob"):
        return [
            value.agent_id,
            value.step,
            float(value.cash),
            value.breach_prob,
            value.breach_level,
            bool(value.is_bankrupt),
        ]
    if hasattr(value, "new_offers"):
        return {name: _plain(getattr(value, name)) for name in STATE}
    if hasattr(value, "outcome_space"):
        shown = {name: _plain(getattr(value, name)) for name in NMI}
        return shown | {"issues": [issue.values for issue in value.issues], "state": _plain(value.state)}
    if hasattr(value, "nmi"):
        return [value.buyer, value.seller, value.product]
    if hasattr(value, "issues"):
        return [issue.values for issue in value.issues]
    return value if isinstance(value, (bool, int, float, str, type(None))) else repr(value)
