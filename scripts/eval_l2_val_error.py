"""Print the errors of L2 in raw units: ``python scripts/eval_l2_val_error.py --output-dir RUN --split val``."""

import sys

from apexrl.configuration import from_command_line
from apexrl.runs.errors import UserFacingError
from litaagent_std.hrl_xf.training.evaluation.l2_error import L2ErrorConfig, run

if __name__ == "__main__":
    try:
        sys.exit(run(from_command_line(L2ErrorConfig, sys.argv[1:], program="eval_l2_val_error.py")))
    except UserFacingError as error:
        sys.exit(f"eval_l2_val_error.py: {error}")
