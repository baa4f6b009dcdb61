"""Checkpoints: sealed files without pickled objects, and the store that keeps several of them.

``checkpoint`` reads, writes and keeps them; ``seal`` is the checksum inside a file; ``storable`` says what a checkpoint
may hold.
"""
