"""The ``lita`` command line, one module per topic."""
