"""The agent's policy: what it observes, four layers, and the brain that joins them; numpy is all it needs.

An `Observation` is taken at the start of each day, a `ThreadObservation` before each decision. `Brain` turns them into
decisions: L2 sets the day's `Goals`, L3 and L4 make a `Plan` for the threads of a round, and nothing leaves the agent
without L1's bounds.

| module | what it holds |
|---|---|
| `observation`, `interface` | observations, and the part of scml's interface that they are taken from |
| `features` | arrays for networks, from observations |
| `memory` | statistics across the days of a world, the inventory regime included |
| `parameters` | the tunable parameters of the heuristics |
| `plan`, `buckets` | what the layers exchange: `Goals`, `Bounds`, `Plan`, delivery buckets |
| `layers` | the protocols of L2, L3 and L4, and the `Situation` that they see |
| `l1`, `l2`, `l3`, `l4` | the layers, heuristic and learned |
| `partners` | signatures of partners, and the network that names their types |
| `networks`, `learned` | forward passes in numpy, weights on disk, learned layers from weights |
| `side`, `brain` | the decisions of one side of a day, and of the whole factory |
| `digest` | the digest of L1's answers, which datasets and weights carry |
| `arrays` | types of arrays |

No module imports anything of this project from outside this package: ``lita export`` copies it into a submission.
"""

from .brain import Brain, Decision, DecisionRecord
from .layers import Action, CoordinationLayer, DecisionLayer, GoalLayer, Layers, LayerSet, Situation, residual
from .learned import load_layers
from .memory import Memory, Regime
from .observation import (
    Agenda,
    Calendar,
    Observation,
    Offer,
    Partner,
    ThreadObservation,
    Turn,
    observe_calendar,
    observe_day,
)
from .parameters import Parameters
from .plan import Bounds, Goals, Plan

__all__ = [
    "Action",
    "Agenda",
    "Bounds",
    "Brain",
    "Calendar",
    "CoordinationLayer",
    "Decision",
    "DecisionLayer",
    "DecisionRecord",
    "GoalLayer",
    "Goals",
    "LayerSet",
    "Layers",
    "Memory",
    "Observation",
    "Offer",
    "Parameters",
    "Partner",
    "Plan",
    "Regime",
    "Situation",
    "ThreadObservation",
    "Turn",
    "load_layers",
    "observe_calendar",
    "observe_day",
    "residual",
]
