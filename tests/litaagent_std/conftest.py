"""What the league's tests share."""

import pytest


@pytest.fixture(scope="session")
def collect():
    """Collects a small tournament into a folder; options are those of `TournamentConfig`."""
    from litaagent_std.market.tournament.config import TournamentConfig
    from litaagent_std.market.tournament.run import run_tournament

    def collect(folder, **options):
        small = {
            "competitors": ("RandomStd", "GreedyStd"),
            "configs": 1,
            "runs": 1,
            "steps": 6,
            "levels": 2,
            "executor": "inline",
            "quiet": True,
        }
        run_tournament(TournamentConfig(**small | options, output_dir=folder))
        return folder

    return collect
