"""What a rollout is stored in, and what is computed from it.

================  =====================================================================
``fragment``      the steps that one env group hands in, and its finished episodes
``rollout``       a complete rollout of one policy version, put together from fragments
``advantages``    generalised advantage estimation and returns
``minibatches``   shuffled samples or sequences
``offline``       recorded decisions for BC and AWR
================  =====================================================================
"""
