"""Penguin, the winner of 2024, with everything it does clipped by our L1: how much is safety alone worth?"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, trunc
from typing import Any, ClassVar

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.policy.layers import Action, Situation
from litaagent_std.policy.observation import Offer
from litaagent_std.world.reproducible.streams import install

install()  # the agent binds the functions of random when it is imported

from negmas import ResponseType  # noqa: E402
from negmas.sao import SAOResponse, SAOState  # noqa: E402
from scml_agents.scml2024.standard.team_penguin import PenguinAgent  # noqa: E402

__all__ = ["Shielded", "ShieldedPenguin"]


class _Echo:
    """An L3 that wants what another agent wants."""

    def __init__(self) -> None:
        self.wanted: dict[str, Action] = {}

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Return the other agent's actions; where it says nothing, the thread ends."""
        return {thread.partner: self.wanted.get(thread.partner, Action("end")) for thread in situation.threads}


class Shielded(LitaAgentHRL):
    """Another synchronous agent under L1: subclass it together with that agent, and name it as `inner`."""

    inner: ClassVar[Any]
    """The agent whose decisions are clipped."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        self._echo = _Echo()
        super().__init__(*args, decision_layer=self._echo, **kwargs)

    def before_step(self) -> None:
        """Lets both see the morning."""
        self.inner.before_step(self)
        super().before_step()

    def step(self) -> None:
        """Lets both see the evening."""
        self.inner.step(self)
        super().step()

    def first_proposals(self) -> dict[str, tuple[int, ...] | None]:
        """Clips the other agent's first proposals."""
        told = self.inner.first_proposals(self)
        self._echo.wanted = {name: _counter(offer) for name, offer in told.items()}
        return super().first_proposals()

    def counter_all(self, offers: Mapping[str, Any], states: Mapping[str, SAOState]) -> dict[str, SAOResponse]:
        """Clips the other agent's answers, all of a round together."""
        told = self.inner.counter_all(self, offers, states)
        self._echo.wanted = {name: _action(response) for name, response in told.items()}
        return super().counter_all(offers, states)


class ShieldedPenguin(Shielded, PenguinAgent):  # type: ignore[misc]  # scml_agents has no type information
    """PenguinAgent under L1."""

    inner = PenguinAgent


def _counter(offer: Any) -> Action:  # noqa: ANN401 - agents offer anything
    if offer is None or not all(isfinite(value) for value in offer):
        return Action("end")
    quantity, time, price = (trunc(value) for value in offer)
    return Action("counter", Offer(quantity, time, price))


def _action(response: SAOResponse) -> Action:
    if response.response == ResponseType.ACCEPT_OFFER:
        return Action("accept")
    return _counter(response.outcome) if response.response == ResponseType.REJECT_OFFER else Action("end")
