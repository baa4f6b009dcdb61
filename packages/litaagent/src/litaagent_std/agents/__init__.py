"""Our agents for the league.

============================  ========================================================================
module                        what it holds
============================  ========================================================================
``hrl``                       ``LitaAgentHRL``, scml's interface around ``litaagent_std.policy``
``variants``                  the same agent in fixed settings, a class for each
``variants_shielded``         Penguin, the winner of 2024, under our L1 (needs scml_agents)
``online``                    the agent that plays weights from online training
``explain``                   reasons of decisions in words, and worlds played again to log them
``export``, ``export_check``  a submission as a zip, and the script that plays it without this project
``scaffold``                  a first agent of a user's own, with a test
============================  ========================================================================
"""
