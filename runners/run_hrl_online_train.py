"""Run ``lita train-online``: online training in the league."""

import sys

from lita.main import main

if __name__ == "__main__":
    sys.exit(main(["train-online", *sys.argv[1:]]))
