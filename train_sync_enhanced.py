"""Synchronous HMASD training: `python train_sync_enhanced.py --help`; settings are in config_1.py."""

import signal
import sys
from pathlib import Path

_OPTIONS_THAT_REPLACE_THE_SETTINGS = frozenset({"--config", "--preset", "--model-path", "-h", "--help"})


def main(arguments: list[str]) -> int:
    """Train with ``config_1.py`` unless ``--config``, ``--preset`` or ``--model-path`` is given."""
    from hmasd.command import TrainCommand, run_command, train

    words = list(arguments)
    if _OPTIONS_THAT_REPLACE_THE_SETTINGS.isdisjoint(word.split("=", 1)[0] for word in words):
        words += ["--config", str(Path(__file__).with_name("config_1.py"))]
    return run_command(TrainCommand, train, words, "train_sync_enhanced.py")


if __name__ == "__main__":
    # A shell starts background jobs with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:  # while modules are imported
        print("train_sync_enhanced.py: interrupted; run the same command again to resume", file=sys.stderr)
        sys.exit(130)
