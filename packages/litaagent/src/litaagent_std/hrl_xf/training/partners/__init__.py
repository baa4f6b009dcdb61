"""The phase ``partner``: a network that names the type of a partner, trained from records of all factories.

===============  =========================================================================================
``fold``         signatures of every pair of a recorded world, in the order of play; snapshots with labels
``dataset``      snapshots of all worlds, folded in parallel, on disk
``network``      the network in torch
``phase``        training, resume, evaluation, export
``evaluation``   accuracy by day, log-loss and calibration by type, beside prior and mixture
===============  =========================================================================================
"""
