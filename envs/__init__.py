"""The PettingZoo environments; the code is in :mod:`hmasd.envs`."""
