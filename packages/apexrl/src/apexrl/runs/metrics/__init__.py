"""Metrics: the logger and its sinks (JSON lines, TensorBoard, console)."""
