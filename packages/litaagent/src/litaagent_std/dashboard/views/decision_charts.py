"""Charts of a seat's decisions: goals against what was signed, prices, interventions and choices."""

from __future__ import annotations

from typing import Final

from apexrl.charts import Band, Chart, Heat, Picture, Series, color_of
from litaagent_std.dashboard.decisions import Goal, SeatDecisions

__all__ = ["decision_charts"]

_PALE: Final = ("#b8c4d0", "#ecc8a8")
"""What was wanted or received: selling, buying. Beside it stands what was signed or accepted, in a strong color."""


def decision_charts(decisions: SeatDecisions, day: int) -> tuple[list[Picture], list[Picture]]:
    """Return the charts of the whole world, and those of one day."""
    charts: list[Picture] = []
    for buying in (False, True):
        if any(goal.buying == buying for goal in decisions.goals):
            charts += [_units(decisions, buying), _gap(decisions, buying), _prices(decisions, buying)]
    if any(decisions.interventions):
        charts.append(_interventions(decisions))
    charts.append(_choices(decisions))
    if any(choice.alpha is not None for choice in decisions.choices):
        charts.append(_weights(decisions))
    return charts, [_delivery(decisions, day)]


def _side_name(buying: bool) -> str:
    return "Buying" if buying else "Selling"


def _name(kind: str, buying: bool) -> str:
    return f"{kind}_{'buy' if buying else 'sell'}"


def _units(decisions: SeatDecisions, buying: bool) -> Chart:
    sides, days = decisions.sides(buying=buying), list(range(decisions.n_days))
    series = [
        Series(name="L2's goal", x=days, y=[side.wanted for side in sides], kind="bar", color=_PALE[buying]),
        Series(name="signed", x=days, y=[side.signed for side in sides], kind="bar", color=color_of(int(buying))),
    ]
    return Chart(
        name=_name("goal_units", buying),
        title=f"{_side_name(buying)}: L2's goal and what was signed",
        series=series,
        x_title="day of decision",
        y_title="units, all delivery days",
        note="The goal at the day's first decision; what is not signed today can be a goal again tomorrow.",
    )


def _gap(decisions: SeatDecisions, buying: bool) -> Heat:
    """Return units signed minus the goal, by day of decision and days until delivery."""
    goals = {goal.day: goal for goal in decisions.goals if goal.buying == buying}
    leads = max((len(goal.units) for goal in goals.values()), default=0)
    signed: dict[tuple[int, int], int] = {}
    for deal in decisions.deals:
        if deal.buying == buying:
            cell = (deal.day, deal.time - deal.day)
            signed[cell] = signed.get(cell, 0) + deal.quantity
    days = range(decisions.n_days)
    values = [
        [
            signed.get((day, lead), 0) - goals[day].units[lead]
            if day in goals and lead < len(goals[day].units)
            else None
            for day in days
        ]
        for lead in range(leads)
    ]
    return Heat(
        name=_name("goal_gap", buying),
        title=f"{_side_name(buying)}: units signed minus L2's goal",
        x=[str(day) for day in days],
        y=[str(lead) for lead in range(leads)],
        values=values,
        diverging=True,
        x_title="day of decision",
        y_title="days until delivery",
        note="Below zero: less was signed for that delivery day than L2 wanted at the start of the day.",
    )


def _prices(decisions: SeatDecisions, buying: bool) -> Chart:
    ranges = {g.day: _wanted_prices(g) for g in decisions.goals if g.buying == buying and any(g.units)}
    deals = [deal for deal in decisions.deals if deal.buying == buying]
    days = list(range(decisions.n_days))
    limits = [None if day not in ranges else ranges[day][1 if buying else 0] for day in days]
    band = Band(
        name="goal prices",
        x=[float(day) for day in ranges],
        low=[low for low, _ in ranges.values()],
        high=[high for _, high in ranges.values()],
    )
    labels = [
        f"day {deal.day}: {deal.quantity} at {deal.price} for day {deal.time} with {deal.partner}, "
        f"goal price {'–' if deal.goal_price is None else f'{deal.goal_price:g}'}"
        for deal in deals
    ]
    taken = Series(
        name="price taken",
        x=[deal.day for deal in deals],
        y=[deal.price for deal in deals],
        kind="points",
        color=color_of(int(buying)),
        labels=labels,
    )
    limit = "the most to pay" if buying else "the least to ask"
    return Chart(
        name=_name("goal_prices", buying),
        title=f"{_side_name(buying)}: L2's goal prices and prices taken",
        series=[Series(name="goal price", x=days, y=limits, color="#7f7f7f", width=1.2), taken],
        bands=[band] if ranges else [],
        x_title="day of decision",
        y_title="unit price",
        note=f"Line: {limit} at the day's first decision; shaded: its range over the delivery days wanted.",
    )


def _wanted_prices(goal: Goal) -> tuple[float, float]:
    prices = [price for price, units in zip(goal.prices, goal.units, strict=True) if units]
    return min(prices), max(prices)


def _interventions(decisions: SeatDecisions) -> Chart:
    days = list(range(len(decisions.interventions)))
    series = [
        Series(name="interventions", x=days, y=list(decisions.interventions), kind="bar", color=color_of(1)),
    ]
    heuristic = "learned" not in decisions.layers
    return Chart(
        name="interventions",
        title="L1: decisions that it changed",
        series=series,
        x_title="day",
        y_title="interventions",
        note="Heuristic layers plan within L1's bounds, so it seldom has to change anything."
        if heuristic
        else "How often L1 changed what the learned layers wanted, to keep it within its bounds.",
    )


def _choices(decisions: SeatDecisions) -> Chart:
    days = list(range(decisions.n_days))
    series = []
    for buying, color in ((False, color_of(0)), (True, color_of(1))):
        sides = decisions.sides(buying=buying)
        if not any(side.received for side in sides):
            continue
        word = "buying" if buying else "selling"
        labels = [
            f"day {day}: {side.accepted} of {side.received} offers accepted; in {side.rounds} rounds there were several"
            for day, side in zip(days, sides, strict=True)
        ]
        series += [
            Series(
                name=f"received, {word}", x=days, y=[side.received for side in sides], kind="bar", color=_PALE[buying]
            ),
            Series(
                name=f"accepted, {word}",
                x=days,
                y=[side.accepted for side in sides],
                kind="bar",
                color=color,
                labels=labels,
            ),
        ]
    return Chart(
        name="choices",
        title="L4: offers on the table and offers accepted",
        series=series,
        x_title="day",
        y_title="offers, each once per round",
        note="A partner may accept ours too, so there are more contracts than acceptances.",
    )


def _weights(decisions: SeatDecisions) -> Chart:
    days = list(range(decisions.n_days))
    series = [
        Series(
            name=word, x=days, y=[side.alpha for side in decisions.sides(buying=buying)], color=color_of(int(buying))
        )
        for buying, word in ((False, "selling"), (True, "buying"))
    ]
    return Chart(
        name="weights",
        title="L4: weight of threads",
        series=series,
        x_title="day",
        y_title="mean α",
        note="The share of L3's correction that is applied to L1's baseline: 0 is the baseline itself.",
    )


def _delivery(decisions: SeatDecisions, day: int) -> Chart:
    series = []
    for buying in (False, True):
        sign, word = (-1, "buy") if buying else (1, "sell")
        goal = next((goal for goal in decisions.goals if goal.day == day and goal.buying == buying), None)
        if goal is not None:
            series.append(_goal_of_day(goal, sign, word))
        signed: dict[int, int] = {}
        for deal in decisions.deals:
            if deal.day == day and deal.buying == buying:
                signed[deal.time] = signed.get(deal.time, 0) + sign * deal.quantity
        if signed:
            name, color = f"signed: {'bought' if buying else 'sold'}", color_of(int(buying))
            series.append(Series(name=name, x=list(signed), y=list(signed.values()), kind="bar", color=color))
    return Chart(
        name="goal_delivery",
        title=f"Day {day}: L2's goal by delivery day, and what was signed",
        series=series,
        x_title="delivery day",
        y_title="units: to buy below 0, to sell above",
        wide=True,
    )


def _goal_of_day(goal: Goal, sign: int, word: str) -> Series:
    leads = range(len(goal.units))
    return Series(
        name=f"goal: {word}",
        x=[goal.day + lead for lead in leads],
        y=[sign * units for units in goal.units],
        kind="bar",
        color=_PALE[goal.buying],
        labels=[f"day {goal.day + lead}: {goal.units[lead]} to {word}, limit {goal.prices[lead]:g}" for lead in leads],
    )
