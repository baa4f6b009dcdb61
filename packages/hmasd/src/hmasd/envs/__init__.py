"""The tasks that HMASD is proved on, each natively batched behind :class:`apexrl.envs.MultiAgentVecEnv`."""
