"""Train the layers from records: ``python runners/run_hrl_bc_awr_train.py`` is ``lita train``."""

import sys

from lita.main import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
