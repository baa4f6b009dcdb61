"""Online training: ``python runners/run_hrl_online_train.py`` is ``lita train-online``."""

import sys

from lita.main import main

if __name__ == "__main__":
    sys.exit(main(["train-online", *sys.argv[1:]]))
