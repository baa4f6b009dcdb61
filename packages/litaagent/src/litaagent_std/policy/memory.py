"""What the agent remembers across the days of a world, built from its observations alone."""

from __future__ import annotations

from .l1.safety import Regime, RegimeDetector
from .l3.heuristic import PartnerModel
from .observation import Calendar, Observation, Partner

DRIFT_DAYS = 10
"""Days over which the drift of a trading price is measured."""

LEAVING_PRIOR, LEAVING_RATE = 0.3, 0.25


class Memory:
    """Running facts of a world: regime, exogenous means, output rate, price drift, bankruptcy forecasts.

    `models` holds the acceptance model of each (selling, partner).

    Args:
        leads: Number of delivery days, today included.
        assume_persistent: Whether to assume, until a day tells, that production leaves the stock alone.
        rate: Step of the moving averages of how days fill.

    Attributes:
        full_rate: How often days sell out lately.
        usual_fill: Share of the lines that is usually sold by lead in the morning.
        leaving: How often each (selling, partner) leaves a negotiation before its end.
    """

    def __init__(self, leads: int, *, assume_persistent: bool, rate: float) -> None:
        self.full_rate = 0.5
        self.usual_fill = [0.5] * leads
        self.leaving: dict[tuple[bool, str], float] = {}
        self._rate = rate
        self._detector = RegimeDetector(Regime.PERSISTENT if assume_persistent else Regime.DEPLETING)
        self._days = 0
        self._exogenous_in = 0
        self._exogenous_out = 0
        self._produced = 0.0
        self._previous: Observation | None = None
        self._final: Calendar | None = None
        self.models: dict[tuple[bool, str], PartnerModel] = {}

    @property
    def regime(self) -> Regime:
        """The inventory regime as far as it is known."""
        return self._detector.regime

    @property
    def regime_known(self) -> bool:
        """Whether a day has told the regime."""
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
        """Take a new day in, and learns from how the last one was settled."""
        previous, final = self._previous, self._final
        if previous is not None and final is not None:
            bought = final.bought[0] + previous.exogenous_in
            sold = final.sold[0] + previous.exogenous_out
            produced = min(previous.stock_in + bought, previous.n_lines, sold)
            self._detector.update(previous.stock_in, bought, produced, obs.stock_in)
            self._produced += 0.2 * (produced - self._produced)
            self._learn_fill(previous, bought, sold)
        self._days += 1
        self._exogenous_in += obs.exogenous_in
        self._exogenous_out += obs.exogenous_out
        self._previous, self._final = obs, obs.calendar

    def note_end(self, partner: str, *, selling: bool, left: bool) -> None:
        """Learns how a thread without agreement ended: the partner left it, or its rounds ran out."""
        before = self.leaving.get((selling, partner), LEAVING_PRIOR)
        self.leaving[selling, partner] = before + LEAVING_RATE * ((1.0 if left else 0.0) - before)

    def _learn_fill(self, day: Observation, bought: int, sold: int) -> None:
        """Learns whether a settled day sold out; a day without anything to sell tells nothing."""
        capacity = min(day.n_lines, day.stock_in + bought)
        if capacity >= 0.5 * day.n_lines:
            self.full_rate += self._rate * ((1.0 if sold >= capacity - 1 else 0.0) - self.full_rate)
        for lead, units in enumerate(day.calendar.sold[: len(self.usual_fill)]):
            self.usual_fill[lead] += self._rate * (units / day.n_lines - self.usual_fill[lead])

    def note_calendar(self, calendar: Calendar) -> None:
        """Remembers the latest commitments of the day, from which its settlement follows."""
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
    """Return the day on which a partner's cash would reach 0 if its latest trend went on (inf if never)."""
    if partner.bankrupt:
        return float("-inf")
    days, cash = partner.report_days[-3:], partner.report_cash[-3:]
    if len(days) < 2 or cash[-1] >= cash[0]:
        return float("inf")
    return days[-1] + cash[-1] * (days[-1] - days[0]) / (cash[0] - cash[-1])
