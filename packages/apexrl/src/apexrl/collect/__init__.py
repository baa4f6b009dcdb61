"""Strictly synchronous collection: a snapshot goes out with a version, fragments come back with it, at a barrier."""
