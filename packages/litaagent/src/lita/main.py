"""``lita``: one command, a sub-command for each job.

Only the requested sub-command is imported, so that ``lita --help`` is fast.
"""

import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, get_type_hints

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo:run", "run the main job end to end at a small scale"),
    "info": ("info:info", "show versions, machine and optional features"),
    "collect": ("tournament:collect", "play a tournament for its records, or resume it"),
    "tournament": ("tournament:tournament", "play the default tournament, or resume it"),
    "arena": ("arena:arena", "compare an agent with others in the same worlds"),
    "explain": ("agent:explain", "print why our agent made each offer to a partner on a day"),
    "tune": ("arena:tune", "optimise the agent's parameters, and evaluate the result on a gate"),
    "train": ("training:train", "train the layers from records, or resume a run"),
    "runs": ("training:runs", "list, show or compare training runs"),
    "train-online": ("training:train_online", "train the agent's layers in the league by PPO, MAPPO or evolution"),
    "distill": ("training:distill", "train smaller networks on the outputs of trained layers"),
    "competitors": ("tournament:competitors", "list the competitors, and check that they play"),
    "records": ("records:records", "show what records hold, and print a negotiation"),
    "serve": ("dashboard:serve", "show tournaments, evaluations and trainings in the browser"),
    "report": ("dashboard:report", "write a report as one file of HTML, with its figures"),
    "new-agent": ("agent:new_agent", "write a working agent of your own, with a test, on top of our layers"),
    "export": ("agent:export", "write our agent as a submission for the league, and play a world from it"),
    "export-scml": ("records:export_scml", "write logs in scml's own form from records"),
    "dataset build": ("dataset:build", "turn records into a dataset for training"),
    "dataset stats": ("dataset:stats", "show counts and distributions of a dataset"),
    "dataset export": ("dataset:export", "write a dataset as Parquet with a card"),
    "checkpoint": ("info:checkpoint", "verify a checkpoint file or a folder of them, and show what is inside"),
    "hmasd train": ("hmasd:train", "train hierarchical skill discovery or a baseline"),
    "hmasd eval": ("hmasd:evaluate", "evaluate a checkpoint of `lita hmasd train`"),
    "hmasd render": ("hmasd:render", "draw an episode and the skills of a checkpoint"),
    "hmasd settings": ("hmasd:settings", "list the settings of `lita hmasd train` with their meaning"),
}
"""Each sub-command: the function that implements it, as ``module:function`` in this package, and its line of help."""

_USAGE = """usage: lita COMMAND [OPTIONS]

LitaAgent HRL-XF: hierarchical reinforcement learning for the ANAC Supply Chain Management League.

commands:
{commands}

`lita COMMAND --help` explains a command. Every command reads its options from defaults,
then from --config FILE.yaml, then from flags.
"""


def usage() -> str:
    """Return the text of ``lita --help``."""
    width = max(map(len, COMMANDS)) + 2
    return _USAGE.format(commands="\n".join(f"  {name:<{width}}{line}" for name, (_, line) in COMMANDS.items()))


def command(name: str) -> tuple[type[Any], Callable[[Any], int]]:
    """Import a sub-command; return the class of its options and the function that takes them."""
    module, _, function = COMMANDS[name][0].partition(":")
    run: Callable[[Any], int] = getattr(importlib.import_module(f"lita.{module}"), function)
    return get_type_hints(run)["config"], run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a sub-command and return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"-h", "--help"}:
        print(usage())
        return 0
    for length in (2, 1):  # two words first: `lita hmasd train`
        name = " ".join(words[:length])
        if name in COMMANDS:
            return _run(name, words[length:])
    group = {name: line for name, (_, line) in COMMANDS.items() if name.startswith(f"{words[0]} ")}
    if group and (len(words) == 1 or words[1] in {"-h", "--help"}):
        print(f"usage: lita {words[0]} COMMAND [OPTIONS]\n\ncommands:")
        print("\n".join(f"  {name:<18}{line}" for name, line in group.items()))
        return 0
    asked = " ".join(words[:2] if group else words[:1])
    near = get_close_matches(asked, group or COMMANDS, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"choose one of: {', '.join(group or COMMANDS)}"
    print(f"lita: there is no command {asked!r}; {hint}", file=sys.stderr)
    return 2


class _Output(io.TextIOWrapper):
    """Standard output or error of a command whose work goes on when nobody reads it any more (`lita … | head`)."""

    def write(self, text: str) -> int:
        """Write; from the first failure on, to nowhere."""
        try:
            return super().write(text)
        except OSError:
            self._leave()
            return len(text)

    def flush(self) -> None:
        """Flush; what nobody takes is dropped."""
        try:
            super().flush()
        except OSError:
            self._leave()

    def _leave(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def _outlive_readers() -> None:
    """Let the command go on without output when the pipe it prints to is closed or its disk is full."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper:  # not where a test or a notebook captures it
            stream.flush()
            encoding = stream.encoding
            # By lines into files and pipes too: whoever follows the log of a long run sees where it is.
            output = _Output(stream.detach(), encoding=encoding, errors="backslashreplace", line_buffering=True)
            setattr(sys, name, output)


def _run(name: str, options: list[str]) -> int:
    from apexrl.configuration import from_command_line
    from apexrl.runs.errors import UserFacingError

    _outlive_readers()
    try:
        config_class, run = command(name)
        return run(from_command_line(config_class, options, program=f"lita {name}"))
    except UserFacingError as error:
        print(f"lita {name}: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name != "hmasd":
            raise
        install = "pip install --find-links dist 'litaagent[hmasd]'"
        print(f"lita {name}: the extra `hmasd` is missing: {install}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"lita {name}: interrupted; run the same command again to resume", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
