"""Strictly synchronous collection: a snapshot goes out with a version, fragments come back with it, at a barrier.

================  ===========================================================================
``env_group``     steps a group of environments under one snapshot and hands in a fragment
``collector``     all groups, in this process or in an executor's workers; the barrier
``recording``     what a group records per step and per episode
================  ===========================================================================
"""
