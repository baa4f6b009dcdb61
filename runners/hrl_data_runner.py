"""Collects records of tournaments: ``python -m runners.hrl_data_runner`` is ``lita collect``."""

import sys

from lita.main import main

if __name__ == "__main__":
    sys.exit(main(["collect", *sys.argv[1:]]))
