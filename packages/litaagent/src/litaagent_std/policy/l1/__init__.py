"""L1: hard and soft bounds, the baseline decision, and the guard that every decision of the other layers passes.

============  =====================================================================================================
module        what it holds
============  =====================================================================================================
``safety``    hard bounds (``bounds``) and the clip of a single offer (``clip``)
``risk``      soft bounds (``sellable``, ``sale_caps``, ``purchase_cap``) and the clip of goals (``bounded_goals``)
``baseline``  reservation prices and offers without a model of the partner
``thread``    the baseline of threads alone, the base of learned residuals
``guard``     the clip of all decisions of a side's round together
============  =====================================================================================================

L1 imports no other layer.
"""

from .risk import bounded_goals, purchase_cap, sale_caps, sellable
from .safety import affordable, bounds, clip
from .thread import DayPlan, day_start_plan, thread_baseline

__all__ = [
    "DayPlan",
    "affordable",
    "bounded_goals",
    "bounds",
    "clip",
    "day_start_plan",
    "purchase_cap",
    "sale_caps",
    "sellable",
    "thread_baseline",
]
