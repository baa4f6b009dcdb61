"""What the agent remembers across the days of a world, computed from its observations alone.

scml (0.7 and 0.8) never takes used input out of the stock, so that a stock of ``n_lines`` feeds the factory for ever.
That may change, so the regime is measured: `RegimeDetector` compares each day's stock with what either rule predicts.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from .observation import Calendar, Observation, Partner

if TYPE_CHECKING:
    from .l3.heuristic import PartnerModel
    from .partners.signature import Signature

__all__ = ["LEAVING_PRIOR", "Memory", "Regime", "RegimeDetector", "forecast_bankruptcy"]

DRIFT_DAYS: Final = 10
"""Days over which the drift of a trading price is measured."""
LEAVING_PRIOR: Final = 0.3
"""How often a partner is expected to leave a negotiation before its end, until it was observed."""
LEAVING_RATE: Final = 0.25
"""Step of the moving average of how often it does."""
FILL_DAYS: Final = 8
"""Days after today whose fill decides how urgent sales are."""
FILL_RATE: Final = 0.3
"""Step of the moving average of that fill."""


class Regime(Enum):
    """Whether production takes input out of the stock."""

    PERSISTENT = "persistent"
    DEPLETING = "depleting"


class RegimeDetector:
    """Infer from the factory's own inventory whether stock depletes.

    Args:
        prior: The regime to assume until a day shows it.
    """

    def __init__(self, prior: Regime) -> None:
        self.regime = prior
        self.known = False

    def update(self, stock_before: int, bought: int, produced: int, stock_after: int) -> None:
        """Update from one settled day; only a day that used more input than it received is informative."""
        if produced <= bought:
            return
        if stock_after == stock_before:
            self.regime, self.known = Regime.PERSISTENT, True
        elif stock_after == stock_before + bought - produced:
            self.regime, self.known = Regime.DEPLETING, True


class Memory:
    """Running statistics of a world: regime, exogenous means, output rate, price drift, fill, beliefs about partners.

    Args:
        leads: Number of delivery days, today included.
        assume_persistent: Whether to assume, until a day shows it, that production leaves the stock unchanged.
        rate: Step of the moving averages of how days fill.

    Attributes:
        full_rate: Moving average of the share of days that sell out.
        usual_fill: Moving average, by lead, of the share of the lines that is sold at the start of a day.
        leaving: How often each (selling, partner) leaves a negotiation before its end.
        models: Acceptance model of each (selling, partner).
        signatures: Signature of each (selling, partner), if types of partners are learned.
        forward_fill: Moving average of the share of the lines that is sold over the next `FILL_DAYS` days at the start
            of a day; None until a day had one.
    """

    def __init__(self, leads: int, *, assume_persistent: bool, rate: float) -> None:
        self.full_rate = 0.5
        self.usual_fill = [0.5] * leads
        self.leaving: dict[tuple[bool, str], float] = {}
        self.models: dict[tuple[bool, str], PartnerModel] = {}
        self.signatures: dict[tuple[bool, str], Signature] = {}
        self.forward_fill: float | None = None
        self._rate = rate
        self._detector = RegimeDetector(Regime.PERSISTENT if assume_persistent else Regime.DEPLETING)
        self._days = 0
        self._exogenous_in = 0
        self._exogenous_out = 0
        self._produced = 0.0
        self._previous: Observation | None = None
        self._final: Calendar | None = None

    @property
    def regime(self) -> Regime:
        """The inventory regime, assumed or observed."""
        return self._detector.regime

    @property
    def regime_known(self) -> bool:
        """Whether the regime was observed."""
        return self._detector.known

    @property
    def mean_exogenous_in(self) -> float:
        """Mean forced input per day so far."""
        return self._exogenous_in / max(1, self._days)

    @property
    def mean_exogenous_out(self) -> float:
        """Mean forced output per day so far."""
        return self._exogenous_out / max(1, self._days)

    def start_day(self, obs: Observation) -> None:
        """Update the statistics with a new day's observation and with the settlement of the day before."""
        previous, final = self._previous, self._final
        if previous is not None and final is not None:
            bought = final.bought[0] + previous.exogenous_in
            sold = final.sold[0] + previous.exogenous_out
            produced = min(previous.stock_in + bought, previous.n_lines, sold)
            self._detector.update(previous.stock_in, bought, produced, obs.stock_in)
            self._produced += 0.2 * (produced - self._produced)
            self._update_fill(previous, bought, sold)
        self._update_forward_fill(obs)
        self._days += 1
        self._exogenous_in += obs.exogenous_in
        self._exogenous_out += obs.exogenous_out
        self._previous, self._final = obs, obs.calendar

    def note_end(self, partner: str, *, selling: bool, left: bool) -> None:
        """Update how often a partner leaves, from a thread without agreement: it left, or the rounds ran out."""
        before = self.leaving.get((selling, partner), LEAVING_PRIOR)
        self.leaving[selling, partner] = before + LEAVING_RATE * ((1.0 if left else 0.0) - before)

    def _update_fill(self, day: Observation, bought: int, sold: int) -> None:
        """Update how full days are from a settled one; a day with little to sell is not informative."""
        capacity = min(day.n_lines, day.stock_in + bought)
        if capacity >= 0.5 * day.n_lines:
            self.full_rate += self._rate * ((1.0 if sold >= capacity - 1 else 0.0) - self.full_rate)
        for lead, units in enumerate(day.calendar.sold[: len(self.usual_fill)]):
            self.usual_fill[lead] += self._rate * (units / day.n_lines - self.usual_fill[lead])

    def _update_forward_fill(self, day: Observation) -> None:
        """Update how full the next days are at the start of a day."""
        ahead = min(FILL_DAYS, len(day.calendar.sold) - 1, day.days_left - 1)
        if ahead < 1:
            return
        fill = sum(day.calendar.sold[1 : ahead + 1]) / (ahead * day.n_lines)
        before = fill if self.forward_fill is None else self.forward_fill
        self.forward_fill = before + FILL_RATE * (fill - before)

    def note_calendar(self, calendar: Calendar) -> None:
        """Remember the latest commitments of the day, from which its settlement follows."""
        self._final = calendar

    def output_rate(self, obs: Observation) -> float:
        """Return the units produced per day that may be expected."""
        return max(self._produced, 0.5 * obs.n_lines if self._days < 5 else 1.0)

    def drift(self, obs: Observation) -> float:
        """Return the drift of the output's trading price in per cent a day over the last days."""
        history = obs.price_history[-DRIFT_DAYS - 1 :]
        if len(history) < 3:
            return 0.0
        before, now = history[0][obs.level + 1], history[-1][obs.level + 1]
        return 100.0 * ((now / before) ** (1.0 / (len(history) - 1)) - 1.0) if before > 0 < now else 0.0


def forecast_bankruptcy(partner: Partner) -> float:
    """Return the day on which a partner's cash would reach 0 if its latest trend continued (inf if never)."""
    if partner.bankrupt:
        return float("-inf")
    days, cash = partner.report_days[-3:], partner.report_cash[-3:]
    if len(days) < 2 or cash[-1] >= cash[0]:
        return float("inf")
    return days[-1] + cash[-1] * (days[-1] - days[0]) / (cash[0] - cash[-1])
