"""Learning of the hierarchical agent.

``data_pipeline`` turns records into datasets, ``training`` trains the layers offline, ``online`` trains them in worlds.
The networks are ``l2_manager`` (the day's goals), ``l3_executor`` (the decision in a thread), ``l4_coordinator``
(weights of the threads) and ``acceptance`` (whether a partner accepts an offer); ``rewards`` are those of online
training, and ``teacher`` is the agent that knows its partners, for labels.
"""
