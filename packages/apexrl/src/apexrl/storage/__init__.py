"""What a rollout is kept in, and how advantages are computed from it."""
