"""L3: decisions within a thread, heuristic and learned."""
