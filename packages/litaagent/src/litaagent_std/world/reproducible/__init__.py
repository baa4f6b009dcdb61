"""What makes worlds reproducible: random streams, hashing, virtual clock, isolation of modules."""
