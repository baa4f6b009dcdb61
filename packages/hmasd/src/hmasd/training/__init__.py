"""The synchronous trainer, collection, evaluation and the run folder."""
