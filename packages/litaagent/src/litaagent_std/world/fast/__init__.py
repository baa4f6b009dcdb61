"""The fast engine, which hosts unmodified agents."""
