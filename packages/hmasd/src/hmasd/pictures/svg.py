"""A few SVG elements, and the colours that all pictures share."""

from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape

COLOURS: Final = ("#4269d0", "#efb118", "#ff725c", "#3ca951", "#a463f2", "#6cc5b0", "#9c6b4e", "#97bbf5")
"""One colour per series or skill; further ones repeat."""
INK: Final = "#30363d"
GRID: Final = "#d0d7de"


def colour(index: int) -> str:
    """Return the colour of the series or skill with this number."""
    return COLOURS[index % len(COLOURS)]


def document(width: float, height: float, elements: Iterable[str], title: str) -> str:
    """Return a whole SVG file on a white ground, with a title that screen readers find."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" font-family="sans-serif" font-size="12" fill="{INK}">'
    )
    ground = f'<rect width="{width:g}" height="{height:g}" fill="white"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", ground, *elements, "</svg>"]) + "\n"


def text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 12, turn: float = 0.0) -> str:
    """Words at a place; ``anchor`` is start, middle or end."""
    rotation = f' transform="rotate({turn:g} {x:g} {y:g})"' if turn else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}"{rotation}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str = GRID, width: float = 1.0) -> str:
    """Return a straight line."""
    return f'<line x1="{x1:.6g}" y1="{y1:.6g}" x2="{x2:.6g}" y2="{y2:.6g}" stroke="{stroke}" stroke-width="{width:g}"/>'


def rectangle(x: float, y: float, width: float, height: float, fill: str, *, opacity: float = 1.0) -> str:
    """Return a filled rectangle."""
    return (
        f'<rect x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}" fill="{fill}" '
        f'fill-opacity="{opacity:.3g}"/>'
    )


def path(
    points: Iterable[tuple[float, float]], *, stroke: str = "none", fill: str = "none", opacity: float = 1.0
) -> str:
    """Return a polyline, or with ``fill`` a polygon."""
    steps = " L".join(f"{x:.5g},{y:.5g}" for x, y in points)
    return f'<path d="M{steps}" fill="{fill}" fill-opacity="{opacity:g}" stroke="{stroke}" stroke-width="2"/>'


def animated(attribute: str, values: Iterable[float | str], seconds: float, *, jumps: bool = False) -> str:
    """Return an attribute that runs through values forever; ``jumps`` instead of gliding."""
    listed = ";".join(value if isinstance(value, str) else f"{value:.5g}" for value in values)
    mode = ' calcMode="discrete"' if jumps else ""
    return f'<animate attributeName="{attribute}" values="{listed}" dur="{seconds:g}s" repeatCount="indefinite"{mode}/>'
