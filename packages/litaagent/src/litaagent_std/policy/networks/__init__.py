"""Networks in play: `inference` runs them with numpy, `inputs` computes their inputs, `weights` reads them."""

from .inference import (
    AcceptanceNetwork,
    CoordinatorNetwork,
    DayInputs,
    DecisionNetwork,
    GoalNetwork,
    ThreadInputs,
    TypeNetwork,
)
from .weights import Weights, WeightsError, load_weights, read_weights

__all__ = [
    "AcceptanceNetwork",
    "CoordinatorNetwork",
    "DayInputs",
    "DecisionNetwork",
    "GoalNetwork",
    "ThreadInputs",
    "TypeNetwork",
    "Weights",
    "WeightsError",
    "load_weights",
    "read_weights",
]
