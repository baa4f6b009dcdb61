"""L4: coordination across threads, heuristic and learned."""
