"""``lita hmasd settings``: what config_1.py, a YAML file and ``--set`` may name."""

from rich.console import Console
from rich.table import Table

from apexrl.configuration import configuration


@configuration
class Config:
    """List every setting of `lita hmasd train` with its default and its meaning."""

    preset: str | None = None
    """Show the values of this preset instead of the defaults: paper, uav_coverage or uav_relay."""


def run(config: Config) -> int:
    """Print the table."""
    from hmasd.config.presets import preset
    from hmasd.config.settings import settings

    table = Table("setting", "value", "meaning")
    for setting in settings(preset(config.preset) if config.preset else None):
        also = f" (also {setting.symbol})" if setting.symbol else ""
        table.add_row(setting.name, repr(setting.value), setting.meaning + also)
    Console().print(table)
    return 0
