"""Exported networks with numpy alone: inputs, forward pass and weights files."""
