"""Ids of factories, as scml makes them: seat, initials of the agent's class, level (``03Gr@0``); neutral: ``03@0``."""

from __future__ import annotations


def agent_name(seat: int, class_name: str | None, level: int) -> str:
    """Return the id of the factory in a seat.

    Args:
        seat: Number of the seat.
        class_name: Name of the agent's class; None for a neutral id.
        level: The factory's level.
    """
    return f"{seat:02}{'' if class_name is None else _initials(class_name)}@{level:01}"


def _initials(class_name: str) -> str:
    shortened = class_name.replace("Agent", "").replace("OneShot", "")
    capitals = "".join(letter for letter in shortened if letter.isupper())[:3]
    if len(capitals) == 3:  # scml uses three capitals where there are three
        return capitals
    if len(class_name) > 3:  # and else the first two letters
        return class_name[:2]
    if len(class_name) > 1:
        return class_name[0] + class_name[1 : 1 + (3 - len(capitals))] + class_name[1:]
    return class_name * 3
