"""The brain joins the four layers and remembers what they need: `Brain` decides for one factory, `BatchBrain` for n.

===========  ===========================================================
module       what it holds
===========  ===========================================================
``one``      the brain of one factory, a `BatchBrain` of one row
``batch``    the brain of n factories
``sides``    what is outstanding and believed on one side of n factories
``reasons``  why a decision was taken
===========  ===========================================================
"""

from .batch import BatchBrain, End
from .one import Brain
from .reasons import Decision, DecisionRecord
from .sides import Side

__all__ = ["BatchBrain", "Brain", "Decision", "DecisionRecord", "End", "Side"]
