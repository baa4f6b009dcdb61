"""How a batch of worlds becomes the next version: PPO, evolution strategies, response surface."""
