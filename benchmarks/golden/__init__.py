"""What the project computes, pinned to the last bit: worlds that are played and weights that are trained."""
