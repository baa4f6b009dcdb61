"""The digest of L1: datasets and weights carry it, so that residuals are never added to another baseline.

It is the digest of L1's answers to a fixed set of situations, on top of the heuristic goals: code that is rewritten to
the same answers keeps it. The situations are short histories of a factory at every level, in both inventory regimes
and at the start, in the middle and at the end of a world, with threads in all phases.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from .arrays import Ints
from .columns import CalendarBatch, ObservationBatch, live_threads
from .l1 import baseline, guard, risk, safety, thread
from .l2.heuristic import heuristic_goals
from .layers import ACCEPT, COUNTER, KEEP, ActionBatch, DayBatch, SituationBatch
from .memory import Memory, Regime
from .observation import Agenda, Calendar, Observation, Offer, Partner, ThreadObservation
from .parameters import ParameterColumns, Parameters, level_name
from .plan import Goals, GoalsBatch, PlanBatch
from .versions import same_digest

__all__ = ["check_l1_digest", "l1_digest"]

_NOT_OF_L1: Final = ("u_buy", "u_sell")
"""Parts of the goals that L1 passes on without reading them."""
_DAYS: Final = 4
_ROUNDS: Final = 8
_MULTIPLIER, _INCREMENT, _MODULUS = 6364136223846793005, 1442695040888963407, 2**64


@cache
def l1_digest() -> str:
    """Return the SHA-256 of L1's answers with the default parameters, in hexadecimal digits."""
    known, cautious = hashlib.sha256(), Parameters().without_risk()
    for index, history in enumerate(_histories()):
        for parameters in (Parameters(), cautious) if index % 3 == 0 else (Parameters(),):
            known.update(json.dumps(_canonical(list(_answers(history, parameters)))).encode())
    return known.hexdigest()


def check_l1_digest(digest: str, what: str) -> None:
    """Make sure that something was made with the present L1.

    Args:
        digest: The digest that it carries.
        what: What it is, for the message.

    Raises:
        ValueError: If it was made with another L1.
    """
    present = l1_digest()
    if not same_digest(digest, present):
        raise ValueError(
            f"{what} was made with L1 {digest[:12]}…, present is {present[:12]}…; residuals would be added to another "
            "baseline, so make it again with this version, or use the version that made it"
        )


def _canonical(value: object) -> object:
    """Return plain JSON values, floats with nine digits, so that machines agree on them."""
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value
    if kind is float:
        return f"{value:.9g}"
    if isinstance(value, tuple | list):
        return [_canonical(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return [[name, _canonical(value[name])] for name in sorted(value)]
    if isinstance(value, frozenset):
        return sorted(value)
    assert is_dataclass(value)
    return [_canonical(getattr(value, field.name)) for field in fields(value) if field.name not in _NOT_OF_L1]


def _answers(history: list[_Day], parameters: Parameters) -> Iterator[object]:
    """Yield L1's answers on every day of a history."""
    first = history[0].obs
    p = ParameterColumns.of([parameters.at(level_name(first.level, first.n_levels))])
    memory = Memory(1, first.horizon + 1, p)
    for obs, later, threads, offers in history:
        batch = ObservationBatch.of([obs])
        memory.start_day(batch)
        now, leads = memory.now, obs.horizon + 1
        for calendar in (obs.calendar, later):
            columns = CalendarBatch.of([calendar])
            limits = safety.bounds(batch, columns, now.persistent)
            goals = heuristic_goals(batch, columns, limits, now, p)
            facts = (batch, columns, limits, now, p)
            caps, most = risk.sale_caps(*facts), risk.purchase_cap(*facts)
            whole = _whole_prices(goals.row(0, leads), sells=obs.sell_agenda is not None)
            yield now.row(0, leads).regime, limits.row(0, leads), whole, tuple(caps[0].tolist()), int(most[0])
            yield risk.bounded_goals(_exaggerated(goals), batch, caps, most).row(0, leads)
            day = DayBatch(batch, columns, limits, now, p)
            if calendar is obs.calendar:
                yield from _thread_answers(obs, day, goals, threads)
            yield from _round_answers(obs, day, goals, threads, offers, caps, most)
        memory.note_due(later.bought[0], later.sold[0])


def _whole_prices(goals: Goals, *, sells: bool) -> Goals:
    return replace(goals, p_sell=tuple(int(price) for price in goals.p_sell)) if sells else goals


def _exaggerated(goals: GoalsBatch) -> GoalsBatch:
    more, nan = goals.q_sell + 25, np.full(goals.p_buy.shape, np.nan)
    zero = np.zeros(goals.p_buy.shape)
    return GoalsBatch(more, nan, more, nan, nan, np.array([np.inf]), zero, zero)


def _thread_answers(
    obs: Observation, day: DayBatch, goals: GoalsBatch, threads: list[ThreadObservation]
) -> Iterator[object]:
    """Yield the plans of the day's start, and the baseline of each thread alone."""
    plan = thread.day_start_plan(day.obs, day.bounds, goals)
    leads = obs.horizon + 1
    for side, (agenda, partners) in enumerate(((obs.buy_agenda, obs.suppliers), (obs.sell_agenda, obs.consumers))):
        if agenda is None:
            yield None
            continue
        shares = {
            partner.name: (int(plan.lead[0, side, index]), int(plan.quantity[0, side, index]))
            for index, partner in enumerate(partners)
            if plan.quantity[0, side, index] > 0
        }
        yield tuple(plan.room[0, side, :leads].tolist()), tuple(plan.most[0, side, :leads].tolist()), shares
    if not threads:
        return
    batch = live_threads(threads, [obs], [0] * len(threads))
    kinds, counters = thread.thread_baseline(batch, day.obs, plan, day.parameters)
    for kind, (quantity, lead, price) in zip(kinds.tolist(), counters.tolist(), strict=True):
        yield ("accept", "reject", "end")[kind], Offer(quantity, obs.day + lead, price)


def _round_answers(
    obs: Observation,
    day: DayBatch,
    goals: GoalsBatch,
    threads: list[ThreadObservation],
    wanted: dict[str, Offer],
    caps: Ints,
    most: Ints,
) -> Iterator[object]:
    """Yield the baseline's offers of a round, and the guard's and the clip's answers to arbitrary decisions."""
    for selling, agenda in ((False, obs.buy_agenda), (True, obs.sell_agenda)):
        side = [asked for asked in threads if asked.buying != selling]
        if agenda is None or not side:
            continue
        batch, ends = live_threads(side, [obs], [0] * len(side)), day.obs.agenda[:, int(selling)]
        room, width = goals.side(selling=selling)[0], goals.q_buy.shape[1]
        rank = np.arange(len(side))
        plan = baseline.baseline_proposals(batch, rank, room, goals, day.obs.day, ends, day.parameters, selling=selling)
        yield _named(plan, side)
        offers = np.array([wanted[asked.partner] for asked in side])
        clipped, left = safety.clip(offers, ends[batch.seat], np.full(len(side), int(most[0])))
        yield [Offer(*row) if fits else None for row, fits in zip(clipped.tolist(), left.tolist(), strict=True)]
        nobody = np.zeros((1, 1), np.bool_)
        situation = SituationBatch(
            selling, np.zeros(1, np.int64), day, goals, ends, batch, nobody, np.zeros((1, 1, 3), np.int64), plan
        )
        kinds = (np.full(len(side), COUNTER), np.where(rank % 2 == 0, ACCEPT, KEEP))
        for kind in kinds:
            total = None if selling else most
            allowed = caps if selling else np.repeat(most[:, None], width, axis=1)
            budgets = np.repeat((day.parameters.risk_budget * obs.n_lines * obs.price_out)[:, None], width, axis=1)
            cost = np.array([0.5 * obs.price_out])
            allowance = guard.Allowance(allowed, total, cost, budgets, lambda row, *_: np.full(len(row), 0.4))
            safe = guard.guard(situation, guard.wanted_plan(situation, ActionBatch(kind, offers)), allowance)
            accepted = frozenset(asked.partner for asked, yes in zip(side, safe.accept, strict=True) if yes)
            yield accepted, _named(safe, side), budgets[0].tolist()


def _named(plan: PlanBatch, side: list[ThreadObservation]) -> dict[str, Offer | None]:
    """Return the proposals of threads where nothing is accepted, by partner."""
    return {
        asked.partner: Offer(*plan.offer[row].tolist()) if plan.propose[row] else None
        for row, asked in enumerate(side)
        if not plan.accept[row]
    }


class _Day(NamedTuple):
    """One day of a history: its start, its commitments at a later moment, and threads with arbitrary proposals."""

    obs: Observation
    later: Calendar
    threads: list[ThreadObservation]
    wanted: dict[str, Offer]


class _Draw:
    """Integers from a linear congruential generator, the same under every version of Python."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def __call__(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        self._state = (_MULTIPLIER * self._state + _INCREMENT) % _MODULUS
        return low + (self._state >> 33) % (high - low + 1)


def _histories() -> Iterator[list[_Day]]:
    """Yield a history for every level of chains of one to three levels, both regimes and three phases of a world."""
    seed = 0
    for n_levels in (1, 2, 3):
        for level in range(n_levels):
            for regime in Regime:
                for first_day in (0, 12, 30 - _DAYS):
                    seed += 1
                    yield _history(_Draw(seed), n_levels, level, regime, first_day)


def _history(draw: _Draw, n_levels: int, level: int, regime: Regime, first_day: int) -> list[_Day]:
    lines, stock, days = draw(4, 11), draw(0, 12), []
    past = [tuple(float(draw(80, 400)) / 10 for _ in range(n_levels + 1)) for _ in range(first_day + 1)]
    for day in range(first_day, first_day + _DAYS):
        obs = _observation(draw, n_levels, level, day, lines, stock, tuple(past))
        later = _calendar(draw, obs, obs.calendar)
        threads, wanted = _threads(draw, obs)
        days.append(_Day(obs, later, threads, wanted))
        bought, sold = later.bought[0] + obs.exogenous_in, later.sold[0] + obs.exogenous_out
        produced = min(stock + bought, lines, sold)
        grown = bought - produced
        stock += grown if regime is Regime.DEPLETING else max(0, grown)
        past.append(tuple(price * draw(96, 105) / 100 for price in past[-1]))
    return days


def _observation(
    draw: _Draw, n_levels: int, level: int, day: int, lines: int, stock: int, past: tuple[tuple[float, ...], ...]
) -> Observation:
    horizon, n_days, prices = 6, 30, past[-1]
    first, last = level == 0, level == n_levels - 1
    exogenous_in, exogenous_out = (draw(0, lines) if edge else 0 for edge in (first, last))

    def agenda(price: float) -> Agenda:
        return Agenda(1, 3 * lines, day, min(day + horizon, n_days - 1), int(0.9 * price), int(1.1 * price) + 1)

    def partners(prefix: str) -> tuple[Partner, ...]:
        return tuple(
            Partner(f"{prefix}{i}", draw(0, 5) == 0, (0, 5), (float(draw(0, 900)), float(draw(0, 900))), 0.0, 0.0, 0.0)
            for i in range(4)
        )

    empty = Calendar((0,) * (horizon + 1), (0.0,) * (horizon + 1), (0,) * (horizon + 1), (0.0,) * (horizon + 1))
    obs = Observation(
        day=day, n_days=n_days, horizon=horizon, level=level, n_levels=n_levels, n_lines=lines, perishable=False,
        cash=float(draw(0, 4000)), initial_balance=2000.0, stock_in=stock, stock_out=0, needed_sales=0,
        needed_supplies=0, exogenous_in=exogenous_in, exogenous_in_value=exogenous_in * prices[level],
        exogenous_out=exogenous_out, exogenous_out_value=exogenous_out * prices[level + 1],
        production_cost=float(draw(1, 6)), shortfall_penalty=draw(2, 9) / 10, storage_cost=draw(0, 5) / 100,
        disposal_cost=0.0, shortfall_penalty_mean=draw(2, 9) / 10, storage_cost_mean=draw(0, 5) / 100,
        disposal_cost_mean=0.0, trading_prices=prices, catalog_prices=past[0], price_history=past,
        market_exogenous_quantity=(0.0,) * len(prices), market_exogenous_value=(0.0,) * len(prices),
        buy_agenda=None if first else agenda(prices[level]), sell_agenda=None if last else agenda(prices[level + 1]),
        calendar=empty, suppliers=() if first else partners("s"), consumers=() if last else partners("c"),
        competitors=(),
    )  # fmt: skip
    return replace(obs, calendar=_calendar(draw, obs, empty))


def _calendar(draw: _Draw, obs: Observation, before: Calendar) -> Calendar:
    """Return a calendar with further commitments on some of the days that are left."""
    units: list[list[int]] = []
    for there, already in ((not obs.first_level, before.bought), (not obs.last_level, before.sold)):
        more = [draw(0, obs.n_lines // 2) * draw(0, 1) if lead < obs.days_left else 0 for lead in range(len(already))]
        units.append([old + new * there for old, new in zip(already, more, strict=True)])
    bought, sold = units
    return Calendar(
        tuple(bought),
        tuple(obs.price_in * quantity for quantity in bought),
        tuple(sold),
        tuple(obs.price_out * quantity for quantity in sold),
    )


def _threads(draw: _Draw, obs: Observation) -> tuple[list[ThreadObservation], dict[str, Offer]]:
    """Return a thread with each partner in an arbitrary round, and an arbitrary proposal for it."""
    threads, wanted = [], {}
    for buying, agenda, partners in ((True, obs.buy_agenda, obs.suppliers), (False, obs.sell_agenda, obs.consumers)):
        for partner in partners if agenda is not None else ():
            assert agenda is not None  # there are partners only where there is an agenda
            offer = Offer(
                draw(1, agenda.quantity_max),
                draw(agenda.time_min, agenda.time_max + 1),
                draw(agenda.price_min - 1, agenda.price_max),
            )
            round_, opens = draw(0, _ROUNDS - 1), draw(0, 1) == 1
            on_table = None if round_ == 0 and opens else offer._replace(quantity=draw(1, obs.n_lines))
            time = (round_ + 1) / (_ROUNDS + 1)
            threads.append(
                ThreadObservation(
                    obs.day, partner.name, buying, round_, _ROUNDS, time, opens, on_table, (), obs.calendar
                )
            )
            wanted[partner.name] = offer
    return threads, wanted
