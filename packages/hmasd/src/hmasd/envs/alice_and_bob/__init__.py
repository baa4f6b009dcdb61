"""Alice_and_Bob: a batched grid task with a sparse team reward."""
