"""Overview of an online training: gain, health, opponents, rewards, the gate, roll-backs and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from apexrl.charts import Band, Chart, Series, color_of
from apexrl.runs.errors import MetricError, ReadFailedError, RunDirError
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.runs.reading import contained, read_sealed
from apexrl.runs.run_dir import RunRecord
from litaagent_std.dashboard.curves import Curve, read_curves, thinned
from litaagent_std.dashboard.page import Table, number, signed

__all__ = ["OnlineOverview", "is_online", "online_overview", "shown_by"]

_LAYERS: Final = ("l2", "l3", "l4")
_HEALTH: Final = {"breach_rate": "units not delivered", "overstock": "days overstocked", "bankruptcies": "bankrupt"}
_SEARCH: Final = ("es/effect", "es/effect_noise", "es/gradient_norm", "es/theta_norm")
_PREFIXES: Final = ("play/", "win_rate/", "reward/", "gate/", "sync/")
_DEFAULT_WINDOW: Final = 10
_TWO_SIDED: Final = 1.96
"""Standard errors on each side of a 95 % interval."""


def is_online(curves: Mapping[str, Curve]) -> bool:
    """Whether the metrics are those of an online training."""
    return "play/gain" in curves


def shown_by(metric: str) -> bool:
    """Whether `online_overview` shows a metric, so that it needs no chart of its own."""
    layer, _, name = metric.partition("/")
    of_layer = layer in _LAYERS and name in {"entropy", "approx_kl", "warm_kl"}
    return of_layer or metric in _SEARCH or metric.startswith(_PREFIXES)


@dataclass(frozen=True, kw_only=True, slots=True)
class OnlineOverview:
    """What the template shows of an online training; without facts there is nothing to show.

    Attributes:
        facts: Method, layers, progress and costs.
        errors: Messages about files that cannot be read.
        charts: Charts of the metrics that an online training is judged by.
        gates: Decisions of the gate; None before the first one.
        has_gate: Whether the run has a gate at all.
    """

    facts: list[tuple[str, str]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    gates: Table | None = None
    has_gate: bool = True


def online_overview(folder: Path, curves: Mapping[str, Curve]) -> OnlineOverview:
    """Return the overview of an online training.

    Args:
        folder: The run's folder.
        curves: Its metrics, for which `is_online` holds.
    """
    config, errors = _config(folder), list[str]()
    try:
        timings = read_curves(folder / "timings.jsonl")
        gates = read_jsonl(folder / "gates.jsonl") if (folder / "gates.jsonl").exists() else []
    except MetricError as error:
        timings, gates = {}, []
        errors.append(str(error))
    window = int(config.get("monitor", {}).get("window", _DEFAULT_WINDOW))
    hours = _hours(timings)
    charts = [
        _gain(curves, window),
        _profit(curves, window),
        _several("online_health", "Health", {text: f"play/{name}" for name, text in _HEALTH.items()}, curves, "share"),
        _several("online_win_rates", "Win rate by opponent", _named(curves, "win_rate/"), curves, "share of worlds"),
        _rewards("day", "day_rewards", curves, config),
        _rewards("thread", "thread_rewards", curves, config),
        _several("online_entropy", "Entropy by layer", {n: f"{n}/entropy" for n in _LAYERS}, curves, "nats"),
        _divergence(curves),
        _several("online_search", "Evolution", {name[3:]: name for name in _SEARCH}, curves, ""),
        _gates(gates),
        _several("online_version", "Version and roll-backs", _COUNTED, curves, "count"),
        _costs(hours),
        _gain_by_cost(curves, hours, window),
    ]
    return OnlineOverview(
        facts=_facts(folder, config, curves, hours),
        errors=errors,
        charts=[chart for chart in charts if chart.series],
        gates=_gate_table(gates),
        has_gate=_has_gate(config),
    )


_COUNTED: Final = {"version of the policy": "sync/version", "roll-backs so far": "sync/rollbacks"}


def _config(folder: Path) -> dict[str, Any]:
    try:
        return dict(RunRecord.read(folder).config)
    except RunDirError:  # the page reports it where it shows the parameters
        return {}


def _summary(folder: Path) -> dict[str, Any]:
    """Return how the latest start ended; empty while the first one is running."""
    try:
        return read_sealed(contained(folder, "summary.json"))
    except (OSError, ReadFailedError):
        return {}


def _last(curves: Mapping[str, Curve], name: str) -> float | None:
    return curves[name][1][-1] if name in curves else None


def _facts(
    folder: Path, config: Mapping[str, Any], curves: Mapping[str, Curve], hours: Mapping[str, Curve]
) -> list[tuple[str, str]]:
    summary = _summary(folder)
    total = sum(values[-1] for _, values in hours.values())
    layers = "l2" if config.get("method") in {"es", "surface"} else ", ".join(map(str, config.get("layers", ())))
    pairs = [
        ("method", str(config.get("method", "–"))),
        ("layers", layers or "–"),
        ("update", str(max(steps[-1] for steps, _ in curves.values()))),
        ("version", number(_last(curves, "sync/version"), 0)),
        ("worlds", number(_last(curves, "sync/worlds"), 0)),
        ("roll-backs", number(_last(curves, "sync/rollbacks"), 0)),
        ("best by the gate", _best(config, summary)),
        ("CPU hours", number(total, 2 if total >= 0.1 else 4)),
    ]
    if summary.get("stopped"):
        pairs.append(("stopped early", str(summary["stopped"])))
    return pairs


def _has_gate(config: Mapping[str, Any]) -> bool:
    return bool((config.get("gate") or {}).get("every", 1))


def _best(config: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    if not _has_gate(config):
        return "no gate, the newest weights play"
    best = summary.get("best")
    passed = best and str(best) != str(config.get("warm"))
    return Path(str(best)).name if passed else "nothing has passed, the newest weights play"


def _smooth(values: Sequence[float], window: int) -> list[float]:
    """Return running means over the latest values, at most ``window`` of them."""
    return [fmean(values[max(0, end - window) : end]) for end in range(1, len(values) + 1)]


def _line(name: str, curve: Curve, index: int, **style: Any) -> Series:  # noqa: ANN401 - fields of Series
    steps, values = thinned(curve)
    return Series(name=name, x=steps, y=values, color=color_of(index), **style)


def _gain(curves: Mapping[str, Curve], window: int) -> Chart:
    steps, gains = curves["play/gain"]
    means = _smooth(gains, window)
    squares = _smooth([error**2 if isfinite(error) else float("nan") for error in curves["play/error"][1]], window)
    # the mean of n independent values has the error sqrt(mean of squares / n)
    errors = [sqrt(square / min(window, index + 1)) for index, square in enumerate(squares)]
    known = [index for index, error in enumerate(errors) if isfinite(error)][:: 1 + len(steps) // 1500]
    band = Band(
        name="95 % interval of the mean",
        x=[steps[index] for index in known],
        low=[means[index] - _TWO_SIDED * errors[index] for index in known],
        high=[means[index] + _TWO_SIDED * errors[index] for index in known],
        color=color_of(0),
    )
    series = [
        _line("each update", (steps, gains), 6, width=0.8),
        _line(f"mean of {window} updates", (steps, means), 0, width=2.5),
    ]
    rolled_back = _roll_backs(curves)
    if rolled_back:
        mean_at = {step: mean for step, mean in zip(steps, means, strict=True)}
        series.append(
            Series(
                name="roll-back",
                x=rolled_back,
                y=[mean_at.get(step) for step in rolled_back],
                kind="points",
                color=color_of(1),
            )
        )
    return Chart(
        name="online_gain",
        title="Gain over the reference in the same worlds",
        series=series,
        bands=[band] if known else [],
        x_title="update",
        y_title="score less the reference's",
        wide=True,
        note="The reference is the heuristic agent on the same seed and seat; exploration is on.",
    )


def _roll_backs(curves: Mapping[str, Curve]) -> list[int]:
    steps, counts = curves.get("sync/rollbacks", ([], []))
    return [step for step, before, now in zip(steps, [0.0, *counts], counts, strict=False) if now > before]


def _profit(curves: Mapping[str, Curve], window: int) -> Chart:
    steps, scores = curves["play/score"]
    profit = [score - 1.0 for score in scores]
    series = [
        _line("each update", (steps, profit), 6, width=0.8),
        _line(f"mean of {window} updates", (steps, _smooth(profit, window)), 2, width=2.5),
    ]
    return Chart(
        name="online_profit", title="Profit", series=series, x_title="update", y_title="share of the initial balance"
    )


def _named(curves: Mapping[str, Curve], prefix: str) -> dict[str, str]:
    return {metric.removeprefix(prefix): metric for metric in sorted(curves) if metric.startswith(prefix)}


def _several(name: str, title: str, metrics: Mapping[str, str], curves: Mapping[str, Curve], unit: str) -> Chart:
    """Return several metrics in one chart, without those that were not logged."""
    logged = [(text, metric) for text, metric in metrics.items() if metric in curves]
    series = [_line(text, curves[metric], index) for index, (text, metric) in enumerate(logged)]
    return Chart(name=name, title=title, series=series, x_title="update", y_title=unit)


def _rewards(what: str, weights_name: str, curves: Mapping[str, Curve], config: Mapping[str, Any]) -> Chart:
    """Return a mean reward and the terms that it is the sum of, each times its weight."""
    series = [_line("reward", curves[f"reward/{what}"], 0, width=3.0)] if f"reward/{what}" in curves else []
    weights = config.get(weights_name, {})
    for index, (term, metric) in enumerate(_named(curves, f"reward/{what}_").items(), start=1):
        weight = float(weights.get(term, 1.0))
        steps, values = curves[metric]
        weighted = (steps, [weight * value for value in values])
        series.append(_line(f"{weight:g} · {term}", weighted, index, dashed=True))
    return Chart(
        name=f"online_reward_{what}",
        title=f"Mean reward of a {what} and its terms",
        series=series,
        x_title="update",
        note="Before the reference's reward is subtracted and the difference is scaled.",
    )


def _divergence(curves: Mapping[str, Curve]) -> Chart:
    series = []
    for index, layer in enumerate(_LAYERS):
        for name, text in (("approx_kl", "from the version that acted"), ("warm_kl", "from the warm start")):
            if f"{layer}/{name}" in curves:
                series.append(
                    _line(f"{layer} {text}", curves[f"{layer}/{name}"], index, dashed=name == "warm_kl", width=1.5)
                )
    return Chart(name="online_kl", title="KL divergence by layer", series=series, x_title="update", y_title="nats")


def _gates(gates: Sequence[Mapping[str, Any]]) -> Chart:
    series = []
    for text, passed, color in (("did not pass", False, color_of(1)), ("passed", True, color_of(2))):
        some = [gate for gate in gates if (gate.get("answer") == "better") is passed and gate.get("mean") is not None]
        labels = [f"{gate.get('candidate')}: {gate.get('answer')} after {gate.get('worlds')} worlds" for gate in some]
        columns = {name: [gate.get(name) for gate in some] for name in ("step", "mean", "low", "high")}
        x, y, low, high = columns.values()
        if some:
            series.append(Series(name=text, x=x, y=y, low=low, high=high, labels=labels, kind="points", color=color))
    return Chart(
        name="online_gate",
        title="Gate: candidate less best in paired worlds",
        series=series,
        x_title="update",
        y_title="difference of scores",
        note="Fresh seeds and opponents held out from training for every candidate; intervals of the sequential test.",
    )


def _gate_table(gates: Sequence[Mapping[str, Any]]) -> Table | None:
    if not gates:
        return None
    rows = [
        [
            str(gate.get("candidate")),
            str(gate.get("best")),
            str(gate.get("answer")),
            str(gate["step"]),
            str(gate.get("worlds")),
            *(signed(gate.get(name), 4) for name in ("mean", "low", "high")),
        ]
        for gate in gates
    ]
    columns = ["candidate", "against", "answer", "update", "worlds", "mean", "low", "high"]
    return Table("Decisions of the gate", columns, rows, n_texts=3)


def _hours(timings: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return CPU hours so far by part of the training."""
    return {
        part: (steps, [value / 3600.0 for value in values])
        for part, (steps, values) in ((part, timings[name]) for part, name in _named(timings, "time/cpu_").items())
    }


def _costs(hours: Mapping[str, Curve]) -> Chart:
    series = [_line(part, curve, index) for index, (part, curve) in enumerate(hours.items())]
    return Chart(name="online_cpu", title="CPU hours so far", series=series, x_title="update", y_title="hours")


def _gain_by_cost(curves: Mapping[str, Curve], hours: Mapping[str, Curve], window: int) -> Chart:
    total: dict[int, float] = {}
    for steps, values in hours.values():
        for step, value in zip(steps, values, strict=True):
            total[step] = total.get(step, 0.0) + value
    steps, gains = curves["play/gain"]
    pairs = [(total[step], mean) for step, mean in zip(steps, _smooth(gains, window), strict=True) if step in total]
    series = [Series(name="", x=[x for x, _ in pairs], y=[y for _, y in pairs])] if pairs else []
    return Chart(
        name="online_cost",
        title=f"Gain (mean of {window} updates) by cost",
        series=series,
        x_title="CPU hours",
        y_title="score less the reference's",
    )
