"""The agent's policy: what it observes, four layers, and the brain that joins them; numpy is all it needs.

Everything is computed on structs of arrays with a leading batch dimension: `columns` holds observations and threads,
the layers take and return such structs, and `BatchBrain` decides for n factories at once. In play the batch is one:
`Brain` takes an `Observation` at the start of each day and a `ThreadObservation` before each decision. L2 sets the
day's `Goals`, L3 and L4 make a `Plan` for the threads of a round, and nothing leaves the agent without L1's bounds.

==============================  ======================================================================================
module                          what it holds
==============================  ======================================================================================
``observation``, ``interface``  observations of one factory, and the part of scml's interface that they are taken from
``columns``                     observations, calendars, partners, threads and offers as columns
``features``                    arrays for networks, from columns
``memory``                      statistics across the days of a world, the inventory regime included
``parameters``                  the tunable parameters of the heuristics, one factory's or as columns
``plan``, ``buckets``           what the layers exchange: goals, bounds, plans, delivery buckets; knapsack and books
``layers``                      the protocols of L2, L3 and L4 for batches and for one factory, and what joins them
``l1``, ``l2``, ``l3``, ``l4``  the layers, heuristic and learned
``partners``                    signatures of partners, and the network that names their types
``networks``, ``learned``       forward passes in numpy, weights on disk, learned layers from weights
``brain``                       what is outstanding and believed on one side of n factories, their decisions, and why
``digest``                      the digest of L1's answers, which datasets and weights carry
``arrays``                      types of arrays
==============================  ======================================================================================

No module imports anything of this project from outside this package: ``lita export`` copies it into a submission.
"""

from .brain import BatchBrain, Brain, Decision, DecisionRecord
from .layers import Action, CoordinationLayer, DecisionLayer, GoalLayer, Layers, LayerSet, Situation, residual
from .learned import load_layers
from .memory import Memory, MemoryRow, Regime
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
    "BatchBrain",
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
    "MemoryRow",
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
