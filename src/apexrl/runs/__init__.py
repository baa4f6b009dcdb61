"""Run directories, checkpoints and metrics."""
