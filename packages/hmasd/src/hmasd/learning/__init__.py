"""Updates of both levels: rollout, skill timing, PPO of coordinator and discoverer, discriminators."""
