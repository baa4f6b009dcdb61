"""``lita collect``: a tournament for its records; ``python -m runners.hrl_data_runner`` calls it."""

from lita.tournament import play
from litaagent_std.tournament.config import TournamentConfig as Config

__all__ = ["Config", "run"]


def run(config: Config) -> int:
    """Collect records, or go on collecting them."""
    return play(config, prefix="hrl_data")
