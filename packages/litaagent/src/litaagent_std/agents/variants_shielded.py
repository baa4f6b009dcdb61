"""Penguin, the winner of 2024, with all its decisions clipped by our L1: what L1 alone contributes.

Apart from `variants`, because importing it needs scml_agents.
"""

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
    """An L3 that returns the actions of another agent."""

    def __init__(self) -> None:
        self.wanted: dict[str, Action] = {}

    def decide(self, situation: Situation, alpha: Mapping[str, float]) -> Mapping[str, Action]:
        """Return the other agent's actions; threads without one end."""
        return {thread.partner: self.wanted.get(thread.partner, Action("end")) for thread in situation.threads}


class Shielded(LitaAgentHRL):
    """Another synchronous agent under L1: subclass it together with that agent, and name it as `inner`."""

    inner: ClassVar[Any]
    """The agent whose decisions are clipped."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - scml's
        self._echo = _Echo()
        super().__init__(*args, decision_layer=self._echo, **kwargs)

    def before_step(self) -> None:
        """Start the day of both agents."""
        self.inner.before_step(self)
        super().before_step()

    def step(self) -> None:
        """End the day of both agents."""
        self.inner.step(self)
        super().step()

    def first_proposals(self) -> dict[str, tuple[int, ...] | None]:
        """Clip the other agent's first proposals."""
        proposals = self.inner.first_proposals(self)
        self._echo.wanted = {name: _counter(offer) for name, offer in proposals.items()}
        return super().first_proposals()

    def counter_all(self, offers: Mapping[str, Any], states: Mapping[str, SAOState]) -> dict[str, SAOResponse]:
        """Clip the other agent's responses, all of a round together."""
        responses = self.inner.counter_all(self, offers, states)
        self._echo.wanted = {name: _action(response) for name, response in responses.items()}
        return super().counter_all(offers, states)


class ShieldedPenguin(Shielded, PenguinAgent):  # type: ignore[misc]  # scml_agents has no type information
    """PenguinAgent under L1."""

    inner = PenguinAgent


def _counter(offer: Any) -> Action:  # noqa: ANN401 - an agent may propose anything
    if offer is None or not all(isfinite(value) for value in offer):
        return Action("end")
    quantity, time, price = (trunc(value) for value in offer)
    return Action("counter", Offer(quantity, time, price))


def _action(response: SAOResponse) -> Action:
    if response.response == ResponseType.ACCEPT_OFFER:
        return Action("accept")
    return _counter(response.outcome) if response.response == ResponseType.REJECT_OFFER else Action("end")
