"""What a run writes: its folder, checkpoints, metrics and log.

Import from the submodules; this package itself loads nothing, so that commands which only need ``errors``, ``atomic``
or ``digest`` do not pay for torch.

===============  ====================================================================================
``errors``       :class:`~apexrl.runs.errors.UserFacingError` and its kinds
``atomic``       files that appear whole or not at all
``digest``       plain values, canonical JSON, SHA-256 digests, differences between configurations
``rng``          random-number states as plain values
``checkpoints``  checkpoint files without pickled objects, and the store that keeps several
``metrics``      the logger and its sinks: JSON lines, TensorBoard, console
``logs``         the log file
``lock``         one writer at a time
``provenance``   package versions and git commit
``run_dir``      the folder that holds all of it
``reading``      files that nobody vouches for, read bounded and checked
``signals``      Ctrl-C and SIGTERM as a request to stop at the next barrier
===============  ====================================================================================
"""
