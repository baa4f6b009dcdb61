"""``lita``: one command, a sub-command for each job.

Only the sub-command that is asked for is imported, so that ``lita --help`` answers at once.
"""

import importlib
import sys
from collections.abc import Sequence

COMMANDS: dict[str, str] = {
    "demo": "run the main job end to end at a small scale",
    "info": "show versions, machine and optional features",
    "collect": "play a tournament for its records, or go on with it",
    "tournament": "play the default tournament, or go on with it",
    "arena": "compare an agent with others in the same worlds",
    "explain": "print why our agent made each offer to a partner on a day",
    "tune": "optimise the agent's parameters, and judge the result",
    "train": "train the layers from records, or go on with a run",
    "runs": "list, show or compare training runs",
    "train-online": "train the agent's layers in the league by PPO, MAPPO or evolution",
    "distill": "teach a compact model what an online training has learned",
    "competitors": "list who can play, and check that they do",
    "records": "show what records hold, and print a negotiation",
    "serve": "show tournaments, evaluations and trainings in the browser",
    "report": "write a report as one file of HTML, with its figures",
    "new-agent": "write a working agent of your own, with a test, on top of our layers",
    "export": "write our agent as a submission for the league, and play a world from it",
    "export-scml": "write logs in scml's own form from records",
    "dataset build": "turn records into a dataset for training",
    "dataset stats": "show counts and distributions of a dataset",
    "dataset export": "write a dataset as Parquet with a card",
    "checkpoint": "verify a checkpoint file or a folder of them, and show what is inside",
    "hmasd train": "train hierarchical skill discovery or a baseline",
    "hmasd eval": "evaluate a checkpoint of `lita hmasd train`",
    "hmasd render": "draw an episode and the skills of a checkpoint",
    "hmasd settings": "list the settings of `lita hmasd train` with their meaning",
}
"""Name of each sub-command and the line that ``lita --help`` shows.

The module of the same name implements it; `hmasd train` is `hmasd_train`, `new-agent` is `new_agent`."""

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
    return _USAGE.format(commands="\n".join(f"  {name:<{width}}{line}" for name, line in COMMANDS.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command; the return value is the exit status.

    Each command module offers ``Config``, a configuration class, and ``run(config) -> int``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"-h", "--help"}:
        print(usage())
        return 0
    for length in (2, 1):  # `lita hmasd train` is found before `lita hmasd`
        name = " ".join(words[:length])
        if name in COMMANDS:
            return _run(name, words[length:])
    group = [name for name in COMMANDS if name.startswith(f"{words[0]} ")]
    print(f"lita: there is no command {words[0]!r}; choose one of: {', '.join(group or COMMANDS)}", file=sys.stderr)
    return 2


def _run(name: str, options: list[str]) -> int:
    from apexrl.configuration import from_command_line
    from apexrl.runs.errors import UserFacingError

    try:
        module = importlib.import_module(f"lita.{name.replace('-', '_').replace(' ', '_')}")
        return int(module.run(from_command_line(module.Config, options, program=f"lita {name}")))
    except UserFacingError as error:
        print(f"lita {name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"lita {name}: interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`lita … | head`): nothing is left to say to anyone.
        sys.stderr.close()
        return 141


if __name__ == "__main__":
    sys.exit(main())
