"""Synchronous HMASD training: `python train_sync_enhanced.py --help`; settings are in config_1.py."""

import sys
from pathlib import Path

from apexrl.configuration import from_command_line
from apexrl.runs.errors import UserFacingError
from hmasd.command import TrainCommand, run


def main(arguments: list[str]) -> int:
    """Train with ``config_1.py`` unless ``--config``, ``--preset`` or ``--model-path`` say otherwise."""
    words = [word.replace("--config", "--settings", 1) if word.startswith("--config") else word for word in arguments]
    named = any(word.split("=", 1)[0] in {"--settings", "--preset", "--model-path", "-h", "--help"} for word in words)
    if not named:
        words += ["--settings", str(Path(__file__).with_name("config_1.py"))]
    try:
        return run(from_command_line(TrainCommand, words, program="train_sync_enhanced.py"))
    except UserFacingError as error:
        print(f"train_sync_enhanced.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
