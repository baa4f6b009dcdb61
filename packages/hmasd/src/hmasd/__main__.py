"""``python -m hmasd COMMAND``: train, eval, render and settings."""

import signal
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from hmasd import command

_COMMANDS: Final[dict[str, tuple[type[Any], Callable[[Any], int], str]]] = {
    "train": (command.TrainCommand, command.train, "train HMASD or a baseline, or resume a run"),
    "eval": (command.EvalCommand, command.evaluate, "evaluate a checkpoint"),
    "render": (command.RenderCommand, command.render, "draw an episode and the skills of a checkpoint"),
    "settings": (command.SettingsCommand, command.settings, "list the settings of training with their meaning"),
}


_EXAMPLES: Final = """
examples:
  python -m hmasd train --preset alice_and_bob --folder runs/alice     # models/, tf-logs/ and logs/ below the folder
  python -m hmasd train --preset alice_and_bob --set seed=3 total_steps=1e6 --folder runs/short
  python -m hmasd eval runs/alice/models/hmasd_sync_enhanced_final.pth
  python -m hmasd render runs/alice/models/hmasd_sync_enhanced_final.pth --out pictures

The same `train` command resumes a run that was stopped or killed.
`python -m hmasd COMMAND --help` explains a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status.

    Args:
        arguments: The command line without the program's name; default: that of the process.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"-h", "--help"}:
        lines = [f"  {name:<10}{line}" for name, (_, _, line) in _COMMANDS.items()]
        print("usage: python -m hmasd COMMAND [OPTIONS]\n\ncommands:\n" + "\n".join(lines))
        print(_EXAMPLES)
        return 0
    if words[0] not in _COMMANDS:
        near = get_close_matches(words[0], _COMMANDS, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose one of: {', '.join(_COMMANDS)}"
        print(f"hmasd: there is no command {words[0]!r}; {hint}", file=sys.stderr)
        return 2
    config_class, run, _ = _COMMANDS[words[0]]
    return command.run_command(config_class, run, words[1:], f"python -m hmasd {words[0]}")


if __name__ == "__main__":
    # A shell starts background jobs with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
