"""Runs the default tournament: ``python runners/run_default_std.py`` is ``lita tournament``."""

import sys

from lita.main import main

if __name__ == "__main__":
    sys.exit(main(["tournament", *sys.argv[1:]]))
