"""The agent of the league: scml's interface around `litaagent_std.policy`.

It turns scml's interface into observations, lets the brain decide, and turns decisions into responses. All threads
of a round are decided together (`StdSyncAgent`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from negmas import Contract, ResponseType
from negmas.sao import SAOResponse, SAOState
from scml.std.agent import StdSyncAgent

from litaagent_std.policy.brain import Brain, Decision
from litaagent_std.policy.layers import (
    DEFAULT_L3,
    BatchCoordination,
    BatchDecisions,
    BatchGoals,
    CoordinationLayer,
    DecisionLayer,
    GoalLayer,
    Layers,
    LayerSet,
)
from litaagent_std.policy.observation import (
    Calendar,
    Observation,
    Offer,
    ThreadObservation,
    Turn,
    observe_calendar,
    observe_day,
)
from litaagent_std.policy.parameters import Parameters

if TYPE_CHECKING:
    from litaagent_std.policy.l2.learned import LearnedGoals

__all__ = ["LitaAgentHRL"]

_RESPONSES = {
    "accept": ResponseType.ACCEPT_OFFER,
    "reject": ResponseType.REJECT_OFFER,
    "end": ResponseType.END_NEGOTIATION,
}
_FIELDS = {"l2": "goal", "l3": "decision", "l4": "coordination"}  # layers by their fields of `LayerSet`


class LitaAgentHRL(StdSyncAgent):  # type: ignore[misc]  # scml has no type information
    """Four layers in play; every layer can be switched, so that each ablation is a configuration.

    Args:
        *args: Passed to scml.
        parameters: Tunable parameters, as `Parameters` or as plain data; default: those that the weights were trained
            with, or those of `Parameters`.
        l2: Version of L2, see `Layers`; default: ``learned`` if the weights hold it, or if they hold no layer, with the
            weights of the package; else the heuristic.
        l3: Version of L3; default: ``learned`` if the weights hold it, else ``types``.
        l4: Version of L4; default: ``learned`` if the weights hold it, else ``joint``.
        weights: File or folder of trained weights, or the folder of a training run. Learned layers and the network of
            types come from it; default for types: the weights that come with the package.
        goal_layer: The user's own L2, instead of weights.
        decision_layer: The user's own L3.
        coordination_layer: The user's own L4.
        keep_log: Whether the brain keeps a record of every decision (`brain.log`).
        label: A name for tables of results.
        **kwargs: Passed to scml.

    Raises:
        ValueError: If a layer is ``learned`` and neither weights nor a layer are given, or weights are given and no
            layer is learned.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - scml's
        parameters: Parameters | Mapping[str, Any] | None = None,
        l2: str | None = None,
        l3: str | None = None,
        l4: str | None = None,
        weights: str | Path | None = None,
        goal_layer: GoalLayer | BatchGoals | None = None,
        decision_layer: DecisionLayer | BatchDecisions | None = None,
        coordination_layer: CoordinationLayer | BatchCoordination | None = None,
        keep_log: bool = False,
        label: str = "",
        **kwargs: Any,  # noqa: ANN401 - scml's
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label = label
        loaded = LayerSet() if weights is None else _load(weights)
        held = (goal_layer, loaded.goal, loaded.decision, loaded.coordination)
        if l2 in (None, "learned") and all(layer is None for layer in held):
            l2, goal_layer = "learned", _shipped_goals()
        given = LayerSet(goal_layer, decision_layer, coordination_layer)
        parameters = loaded.base.get("parameters") if parameters is None else parameters
        if parameters is not None and not isinstance(parameters, Parameters):
            parameters = Parameters.from_mapping(parameters)
        layers = Layers(
            l2=l2 or _version(loaded.goal, "heuristic"),
            l3=l3 or _version(loaded.decision, str(loaded.base.get("l3", DEFAULT_L3))),
            l4=l4 or _version(loaded.coordination, "joint"),
        )
        chosen = _choose(layers, given, loaded, weights)
        self.brain = Brain(
            parameters,
            layers,
            keep_log=keep_log,
            goal_layer=chosen.goal,
            decision_layer=chosen.decision,
            coordination_layer=chosen.coordination,
            types=chosen.types,
        )
        self._today: Observation | None = None
        self._suppliers: frozenset[str] = frozenset()
        self._void: frozenset[str] = frozenset()
        self._turns: dict[str, list[Turn]] = {}
        self._calendar: Calendar | None = None  # of this moment, until our contracts change

    def before_step(self) -> None:
        """Start the day with its observation."""
        self._today = today = observe_day(self.awi, self._today)
        # nobody goes bankrupt before the day's settlement
        self._void = frozenset(partner.name for partner in (*today.suppliers, *today.consumers) if partner.bankrupt)
        self._suppliers = frozenset(self.awi.my_suppliers)
        self._turns, self._calendar = {}, None
        self.brain.start_day(self._today)

    def step(self) -> None:
        """Notify the brain of the commitments with which the day goes into settlement."""
        self.brain.end_day(observe_calendar(self.awi))

    def first_proposals(self) -> dict[str, tuple[int, ...] | None]:
        """Propose to every partner at the start of its negotiation, if we open it."""
        if not self._opens():
            return {}
        decisions = self._decide(self._opening_threads())
        return self._proposals({name: decision.offer for name, decision in decisions.items()})

    def _opening_threads(self) -> list[ThreadObservation]:
        running = {name: entry[0].nmi for name, entry in self.negotiators.items()}
        now = self._now()
        return [self._thread(name, nmi.state, None, now) for name, nmi in running.items() if nmi is not None]

    def _proposals(self, proposals: Mapping[str, Offer | None]) -> dict[str, tuple[int, ...] | None]:
        for name, offer in proposals.items():
            self._note(name, 0, mine=True, offer=offer)
        return {name: None if offer is None else tuple(offer) for name, offer in proposals.items()}

    def counter_all(self, offers: Mapping[str, Any], states: Mapping[str, SAOState]) -> dict[str, SAOResponse]:
        """Decide on all offers of a round together."""
        threads = self._threads(offers, states)
        return self._responses(threads, self._decide(threads))

    def _decide(self, threads: Sequence[ThreadObservation]) -> dict[str, Decision]:
        return self.brain.respond(threads)

    def _threads(self, offers: Mapping[str, Any], states: Mapping[str, SAOState]) -> list[ThreadObservation]:
        now = self._now()
        return [self._thread(name, states[name], offer, now) for name, offer in offers.items() if name in states]

    def _now(self) -> Calendar:
        """Return the commitments of this moment: during a day only an agreement of ours changes them."""
        if self._calendar is None:
            self._calendar = observe_calendar(self.awi, self._void)
        return self._calendar

    def _responses(
        self, threads: Sequence[ThreadObservation], decisions: Mapping[str, Decision]
    ) -> dict[str, SAOResponse]:
        for thread in threads:
            # A partner's reply to our opening belongs to the round that we opened, and arrives in the next.
            self._note(thread.partner, thread.round - thread.opens, mine=False, offer=thread.offer)
            decision = decisions[thread.partner]
            if decision.kind == "reject":
                self._note(thread.partner, thread.round, mine=True, offer=decision.offer)
        return {name: _response(decision) for name, decision in decisions.items()}

    def on_negotiation_success(self, contract: Contract, mechanism: Any) -> None:  # noqa: ANN401 - negmas's
        """Notify the brain of an agreement."""
        super().on_negotiation_success(contract, mechanism)
        self._calendar = None
        buyer, seller = contract.annotation["buyer"], contract.annotation["seller"]
        buying = buyer == self.id
        agreement = contract.agreement
        offer = Offer(int(agreement["quantity"]), int(agreement["time"]), int(agreement["unit_price"]))
        self.brain.contract(seller if buying else buyer, buying=buying, offer=offer)

    def on_negotiation_failure(
        self,
        partners: list[str],
        annotation: dict[str, Any],
        mechanism: Any,  # noqa: ANN401 - negmas's
        state: SAOState,
    ) -> None:
        """Notify the brain of a negotiation without agreement."""
        super().on_negotiation_failure(partners, annotation, mechanism, state)
        for name in partners:
            if name != self.id:
                self.brain.thread_failed(name)

    def _thread(
        self,
        name: str,
        state: SAOState,
        offer: Any,  # noqa: ANN401 - an outcome
        calendar: Calendar,
    ) -> ThreadObservation:
        assert self._today is not None
        n_rounds = int(self.negotiators[name][0].nmi.n_steps)
        round_ = int(state.step)
        return ThreadObservation(
            day=self._today.day,
            partner=name,
            buying=name in self._suppliers,
            round=round_,
            n_rounds=n_rounds,
            # Not the mechanism's own clock: it is 0 at first proposals and depends on the speed of the machine.
            relative_time=min(1.0, (round_ + 1) / (n_rounds + 1)),
            opens=self._opens(),
            offer=None if offer is None else Offer(int(offer[0]), int(offer[1]), int(offer[2])),
            turns=tuple(self._turns.get(name, ())),
            calendar=calendar,
        )

    def _opens(self) -> bool:
        """Whether we propose first: the callers are every other level, counted from the last."""
        assert self._today is not None
        return (self._today.n_levels - 1 - self._today.level) % 2 == 0

    def _note(self, name: str, round_: int, *, mine: bool, offer: Offer | None) -> None:
        if offer is not None:
            self._turns.setdefault(name, []).append(Turn(round_, mine, offer))


def _load(weights: str | Path) -> LayerSet:
    from litaagent_std.policy.learned import load_layers

    return load_layers(weights)


def _shipped_goals() -> LearnedGoals:
    from litaagent_std.policy.learned import shipped_goals

    return shipped_goals()


def _version(layer: object | None, heuristic: str) -> str:
    return heuristic if layer is None else "learned"


def _choose(layers: Layers, given: LayerSet, loaded: LayerSet, weights: str | Path | None) -> LayerSet:
    """Return the layers that play: those given, and learned ones from the weights where none is given."""
    missing = [name for name in layers.learned if getattr(given, _FIELDS[name]) is None]
    absent = [name for name in missing if getattr(loaded, _FIELDS[name]) is None]
    if absent and weights is None:
        raise ValueError(
            f"{', '.join(absent)} shall be learned, but there are no weights; give weights=FILE_OR_FOLDER, or "
            "leave those layers to their heuristics"
        )
    if absent:
        raise ValueError(
            f"weights={str(weights)!r} hold no {', '.join(absent)}; train it, or leave it to its heuristic"
        )
    types = loaded.types if layers.typed else None
    if weights is not None and not missing and types is None:
        raise ValueError(
            f"weights={str(weights)!r} would not be used: no layer that they hold is learned; leave out l2, l3 and l4, "
            "set one of them to 'learned', or leave out the weights"
        )
    learned = {_FIELDS[name]: getattr(loaded, _FIELDS[name]) for name in missing}
    return replace(given, **learned, types=types)


def _response(decision: Decision) -> SAOResponse:
    offer = None if decision.kind == "end" or decision.offer is None else tuple(decision.offer)
    return SAOResponse(_RESPONSES[decision.kind], offer)
