"""Charts: learning curves with intervals, bars of skill usage, and confusion matrices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apexrl.arrays import Floats
from apexrl.statistics import interval_over_seeds
from hmasd.pictures.svg import INK, colour, document, line, path, rectangle, text

_WIDTH, _HEIGHT = 640.0, 360.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 150.0, 36.0, 44.0


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One line of a learning-curve chart; all sequences have the same length."""

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    """Lower end of the interval at each point."""
    high: Sequence[float]
    """Upper end of the interval at each point."""


def curve_over_seeds(name: str, x: Sequence[float], runs: Floats) -> Curve:
    """Mean and bootstrap interval over seeds of ``(seeds, len(x))`` values."""
    bounds = [interval_over_seeds(runs[:, index]) for index in range(runs.shape[1])]
    return Curve(
        name=name,
        x=x,
        mean=runs.mean(axis=0).tolist(),
        low=[low for low, _ in bounds],
        high=[high for _, high in bounds],
    )


def learning_curves(curves: Sequence[Curve], *, title: str, x_label: str, y_label: str) -> str:
    """Lines with shaded intervals and a legend."""
    everything = np.concatenate([np.concatenate([curve.low, curve.high, curve.mean]) for curve in curves])
    y_low, y_high = min(0.0, float(everything.min())), float(everything.max()) or 1.0
    x_high = max(max(curve.x) for curve in curves)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            _LEFT + x / x_high * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - (y - y_low) / (y_high - y_low) * (_HEIGHT - _TOP - _BOTTOM),
        )

    elements = [text(_LEFT, 22, title, size=14)]
    for tick in np.linspace(y_low, y_high, 5):
        x, y = place(0.0, float(tick))
        elements += [line(x, y, _WIDTH - _RIGHT, y), text(x - 6, y + 4, f"{tick:.3g}", anchor="end")]
    for tick in np.linspace(0.0, x_high, 4):
        x, y = place(float(tick), y_low)
        elements += [line(x, y, x, y + 4, stroke=INK), text(x, y + 18, f"{tick:.3g}", anchor="middle")]
    for index, curve in enumerate(curves):
        band = [place(x, y) for x, y in zip(curve.x, curve.low, strict=True)]
        band += [place(x, y) for x, y in zip(reversed(curve.x), reversed(curve.high), strict=True)]
        elements.append(path(band, fill=colour(index), opacity=0.18))
        elements.append(path([place(x, y) for x, y in zip(curve.x, curve.mean, strict=True)], stroke=colour(index)))
        key = _TOP + 12 + 20 * index
        elements += [rectangle(_WIDTH - _RIGHT + 12, key - 9, 12, 12, colour(index))]
        elements += [text(_WIDTH - _RIGHT + 30, key + 1, curve.name)]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    elements.append(text(middle, _HEIGHT - 8, x_label, anchor="middle"))
    elements.append(text(16, _HEIGHT / 2, y_label, anchor="middle", turn=-90))
    return document(_WIDTH, _HEIGHT, elements, title)


def usage_bars(shares: Sequence[float], *, title: str, label: str) -> str:
    """Return a bar per skill with its share of the choices."""
    width, height, base = 80.0 + 60.0 * len(shares), 240.0, 200.0
    elements = [text(20, 22, title, size=14), line(40, base, width - 20, base, stroke=INK)]
    for index, share in enumerate(shares):
        x, tall = 50.0 + 60.0 * index, 150.0 * share
        elements.append(rectangle(x, base - tall, 40, tall, colour(index)))
        elements.append(text(x + 20, base - tall - 6, f"{100 * share:.0f} %", anchor="middle"))
        elements.append(text(x + 20, base + 18, f"{label} {index}", anchor="middle"))
    return document(width, height, elements, title)


def confusion_matrix(counts: Floats, *, title: str) -> str:
    """Rows are true skills, columns what the discriminator says; cells show the share of their row."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    n, cell, left, top = counts.shape[0], 56.0, 90.0, 66.0
    elements = [text(20, 22, title, size=14), text(left, 44, "said by the discriminator →")]
    for row in range(n):
        elements.append(text(left - 10, top + cell * row + cell / 2 + 4, f"true {row}", anchor="end"))
        elements.append(text(left + cell * row + cell / 2, top - 8, str(row), anchor="middle"))
        for column in range(n):
            share = float(shares[row, column])
            x, y = left + cell * column, top + cell * row
            elements.append(rectangle(x, y, cell - 2, cell - 2, colour(0), opacity=0.06 + 0.7 * share))
            elements.append(text(x + cell / 2, y + cell / 2 + 4, f"{100 * share:.0f} %", anchor="middle"))
    return document(max(left + cell * n + 20, 280.0), top + cell * n + 20, elements, title)
