"""A task that nothing but memory solves: act on a cue that was shown many steps ago."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from apexrl.arrays import Floats32

Info = dict[str, Any]


class CueRecall(gym.Env[Floats32, np.int64]):
    """Name the cue that the first observation showed, `delay` steps later.

    The observation is the one-hot cue in the first step and zeros afterwards, followed by a flag that is 1 when the
    answer is asked for. Only that last action counts: reward 1 if it names the cue, otherwise 0. Without memory a
    policy gets 1 / num_cues on average.

    Args:
        delay: Steps between cue and answer.
        num_cues: Number of cues, all equally likely.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's name and form

    def __init__(self, delay: int = 20, num_cues: int = 4) -> None:
        if delay < 1 or num_cues < 2:
            raise ValueError(f"delay={delay} must be at least 1 and num_cues={num_cues} at least 2.")
        self.observation_space = spaces.Box(0.0, 1.0, (num_cues + 1,), np.float32)
        self.action_space = spaces.Discrete(num_cues)
        self.delay, self.num_cues = delay, num_cues
        self._cue = self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats32, Info]:
        """Draw a cue and show it."""
        super().reset(seed=seed)
        self._cue, self._steps = int(self.np_random.integers(self.num_cues)), 0
        observation = np.zeros(self.num_cues + 1, np.float32)
        observation[self._cue] = 1.0
        return observation, {}

    def step(self, action: np.int64) -> tuple[Floats32, float, bool, bool, Info]:
        """Wait, or take the answer; ``info["is_success"]`` says in the last step whether it was right."""
        observation = np.zeros(self.num_cues + 1, np.float32)
        if self._steps == self.delay:
            is_right = int(action) == self._cue
            return observation, float(is_right), True, False, {"is_success": is_right}
        self._steps += 1
        observation[-1] = float(self._steps == self.delay)
        return observation, 0.0, False, False, {}
