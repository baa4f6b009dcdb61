"""Tournaments: what is played (`plan`), how a world is played (`play`), the run (`run`) and what came of it (`results`)."""
