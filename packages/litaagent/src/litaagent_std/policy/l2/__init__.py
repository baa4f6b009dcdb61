"""L2: the day's goals, heuristic and learned."""
