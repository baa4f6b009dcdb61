"""What a run leaves on disk: its folder, checkpoints, metrics and log.

Import from the submodules; this package itself loads nothing, so that commands which only need ``errors``, ``atomic``
or ``digest`` do not pay for torch.

===============  ====================================================================================
``errors``       :class:`~apexrl.runs.errors.UserFacingError` and its kinds
``atomic``       files that appear whole or not at all
``digest``       plain values, canonical JSON, SHA-256 digests, differences between configurations
``seal``         the checksum inside a checkpoint file
``storable``     what a checkpoint may hold
``rng``          random-number states as plain values
``checkpoint``   one checkpoint file, and the store that keeps several
``jsonl``        metrics as lines of JSON
``tensorboard``  metrics as TensorBoard events
``console``      metrics as a progress bar or as plain lines
``metrics``      the logger that feeds these sinks
``logs``         the log file
``lock``         one writer at a time
``provenance``   package versions and git commit
``run_dir``      the folder that holds all of it
``signals``      Ctrl-C and SIGTERM as a polite request to stop
===============  ====================================================================================
"""
