"""L1: hard and soft bounds, the guard over all threads, and the baseline decision."""
