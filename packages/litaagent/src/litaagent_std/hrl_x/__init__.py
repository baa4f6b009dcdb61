"""Linear models of L2 and L3 in numpy, and samples from scml's own tables, on the code of `hrl_xf`.

``data_pipeline`` names the way from negotiation tables to samples; ``training`` trains, saves and loads the models
(``inputs``: samples as matrices; ``linear``: the models and their optimiser).
"""
