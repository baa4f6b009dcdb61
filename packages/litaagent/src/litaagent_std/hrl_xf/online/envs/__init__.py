"""The league as Gymnasium, PettingZoo and `VecEnv` environments."""
