"""Overcooked: two cooks deliver onion soups; the rules of the package ``overcooked-ai``, for a batch of kitchens."""

from hmasd.envs.overcooked.env import OvercookedEnv
from hmasd.envs.overcooked.kitchens import LAYOUTS, Kitchens, Layout

__all__ = ["LAYOUTS", "Kitchens", "Layout", "OvercookedEnv"]
