"""The ``lita`` command line, one module per sub-command."""
