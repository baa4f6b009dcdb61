"""Configuration: the settings of a run, the files they come from, and the presets per task."""
