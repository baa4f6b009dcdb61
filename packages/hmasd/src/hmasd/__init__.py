# SPDX-License-Identifier: Apache-2.0
"""hmasd: hierarchical multi-agent skill discovery (Yang et al., NeurIPS 2023), trained strictly synchronously.

    >>> from hmasd import HMASDConfig, preset, train
    >>> config = preset("paper", total_steps=3200)          # doctest: +SKIP
    >>> trainer = train(config)                             # doctest: +SKIP

* Settings: :class:`HMASDConfig`, :func:`preset`, :func:`load_config`.
* Runs: :func:`train`, :class:`Trainer`, :func:`evaluate`.
* Algorithms: :class:`HMASDAgent`, :class:`MAPPOAgent`, :class:`MATAgent`; networks are in :mod:`hmasd.networks`.
* Tasks: :func:`make_env`, :class:`AliceAndBobEnv`, :class:`OvercookedEnv`, :class:`UAVEnv`, :class:`UAVConfig`.

``python -m hmasd`` has the commands train, eval, render and settings. Names are imported on first use, so that
``import hmasd`` is fast.
"""

from typing import TYPE_CHECKING

from apexrl.lazy import lazy_names

if TYPE_CHECKING:
    from hmasd.agent import HMASDAgent
    from hmasd.baselines import MAPPOAgent, MATAgent
    from hmasd.config import HMASDConfig, load_config, preset
    from hmasd.envs import AliceAndBobEnv, OvercookedEnv, UAVConfig, UAVEnv
    from hmasd.tasks import make_agent, make_env
    from hmasd.training import EvaluationResult, Trainer, evaluate, train

    __version__: str
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "hmasd.agent": ("HMASDAgent",),
            "hmasd.baselines": ("MAPPOAgent", "MATAgent"),
            "hmasd.config": ("HMASDConfig", "load_config", "preset"),
            "hmasd.envs": ("AliceAndBobEnv", "OvercookedEnv", "UAVConfig", "UAVEnv"),
            "hmasd.tasks": ("make_agent", "make_env"),
            "hmasd.training": ("EvaluationResult", "Trainer", "evaluate", "train"),
        },
        distribution="hmasd",
    )

__all__ = [
    "AliceAndBobEnv",
    "EvaluationResult",
    "HMASDAgent",
    "HMASDConfig",
    "MAPPOAgent",
    "MATAgent",
    "OvercookedEnv",
    "Trainer",
    "UAVConfig",
    "UAVEnv",
    "__version__",
    "evaluate",
    "load_config",
    "make_agent",
    "make_env",
    "preset",
    "train",
]
