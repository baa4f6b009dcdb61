"""Synchronous HMASD training: `python train_sync_enhanced.py --help`; settings are in config_1.py."""

import signal
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Train with ``config_1.py`` unless ``--config``, ``--preset`` or ``--model-path`` say otherwise."""
    from apexrl.configuration import from_command_line
    from apexrl.runs.errors import UserFacingError
    from hmasd.command import TrainCommand, run

    words = list(arguments)
    if not any(word.split("=", 1)[0] in {"--config", "--preset", "--model-path", "-h", "--help"} for word in words):
        words += ["--config", str(Path(__file__).with_name("config_1.py"))]
    try:
        return run(from_command_line(TrainCommand, words, program="train_sync_enhanced.py"))
    except UserFacingError as error:
        print(f"train_sync_enhanced.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    # A shell starts what it runs in the background with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("train_sync_enhanced.py: interrupted; run the same command again to go on", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output went away
        sys.stderr.close()
        sys.exit(141)
