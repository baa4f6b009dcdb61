"""Configuration: the settings of a run (:class:`HMASDConfig`), presets, files and the list of settings."""

from hmasd.config.file import ALIASES, load_config, plain_number
from hmasd.config.presets import PRESETS, preset
from hmasd.config.schema import HMASDConfig
from hmasd.config.settings import Setting, list_settings, markdown

__all__ = [
    "ALIASES",
    "PRESETS",
    "HMASDConfig",
    "Setting",
    "list_settings",
    "load_config",
    "markdown",
    "plain_number",
    "preset",
]
