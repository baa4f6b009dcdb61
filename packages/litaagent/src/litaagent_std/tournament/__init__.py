"""Tournaments: the plan of worlds, how one is played, the run that goes on after a kill, and what came of it."""
