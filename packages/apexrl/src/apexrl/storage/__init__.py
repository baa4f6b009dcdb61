"""What a rollout is stored in, and what is computed from it.

============  =====================================================================
``rollout``   recording, fragments, and a complete rollout of one policy version
``samples``   advantages and returns, samples, minibatches
``offline``   recorded decisions for BC and AWR
============  =====================================================================
"""
