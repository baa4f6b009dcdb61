"""The real parsers accept every command line of the documentation.

Blocks of ``bash`` run in ``test_code_blocks``; here every line of ``bash`` and ``console`` blocks and every command in
running text is parsed: ``lita`` and the runners by their own configuration classes, targets of make and options of
benchmarks by the files that define them. Names of competitors are looked up in the registry, and values by the plans
that the commands make. Nothing is run.
"""

import functools
import re
import shlex
import sys
from pathlib import Path

import pytest

from apexrl.configuration import from_command_line
from lita.main import COMMANDS, command
from litaagent_std.arena.config import ArenaConfig
from litaagent_std.arena.tuning.config import TuneConfig
from litaagent_std.tournament.competitors.names import resolve
from litaagent_std.world.scml.verify import VerifyConfig

ROOT = Path(__file__).parents[2]
MADE = {"_build", "_generated"}
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md"), *ROOT.glob("packages/*/README.md")])
PAGES = [page for page in PAGES if not MADE & set(page.parts)]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
COMMAND = re.compile(
    r"^(?:\w+=\S* )*(?:\.venv/bin/)?(lita|make|python3?|ray|tensorboard|pip|source|git|pytest|\./\S+)(?: |$)"
)
SUBSTITUTED = re.compile(r'"\$\(.*?\)"')
PLACEHOLDER = re.compile(r"^(\[?[A-Z][A-Z_]*\]?|.*…)$")
ELSEWHERE = {"ray", "tensorboard", "pip", "source", "git", "pytest"}


def in_blocks(text):
    """Return the command lines of shell blocks."""
    commands = []
    for language, body in BLOCK.findall(text):
        for line in re.sub(r"\\\n\s*", "", body).splitlines():
            if language == "bash" and line.strip() and not line.startswith("#"):
                commands.append(line)
            elif language == "console" and line.startswith("$ "):
                commands.append(line[2:])
            elif language in {"console", "text", ""} and COMMAND.match(line):
                commands.append(line)
    return commands


def in_text(text):
    """Return the commands in running text."""
    spans = (" ".join(span.split()) for span in SPAN.findall(BLOCK.sub("", text)))
    return [span for span in spans if COMMAND.match(span)]


def words_of(command):
    """Return the words of each simple command of a line."""
    words = shlex.split(SUBSTITUTED.sub("WORD", command), comments=True)
    parts = [[]]
    for word in words:
        if word in {"|", "&&", ";", ">"}:
            parts.append([])
        elif parts[-1] or not re.match(r"^[A-Z_]+=", word):
            parts[-1].append(word)
    return [part for part in parts if part]


@functools.cache
def make_targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def options_in(words):
    return [word.split("=")[0] for word in words if word.startswith("--")]


def check_known_to(options, *files):
    texts = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    unknown = [option for option in options if f'"{option}"' not in texts]
    assert not unknown, f"{files[0]} does not know {unknown}"


def check_make(words):
    targets = [word for word in words if "=" not in word]
    given = [shlex.split(word.partition("=")[2]) for word in words if "=" in word]
    options = [option for words in given for option in options_in(words)]
    for target in targets:
        if target == "bench-NAME":
            continue
        if target.startswith("bench-"):
            module = f"benchmarks/{target.removeprefix('bench-').replace('-', '_')}.py"
            assert (ROOT / module).is_file(), f"there is no {module}"
            check_known_to(options, module, "benchmarks/harness.py")
        else:
            assert target in make_targets(), f"the Makefile has no target {target!r}"
            if target == "verify-world":
                from_command_line(VerifyConfig, [word for words in given for word in words], program="verify-world")


def check_lita(words, capsys, *, mentioned=False):
    """Parse a command; if it is only mentioned or has placeholders, check its name and the names of its options."""
    if words[:1] in ([], ["COMMAND"], ["--help"]):
        return  # lita itself
    name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in COMMANDS), None)
    if name is None:
        group = " ".join(words)
        assert mentioned, f"there is no command lita {group}"
        assert any(known.startswith(f"{group} ") for known in COMMANDS), f"there is no command lita {group}"
        return
    options = words[len(name.split()) :]
    config_class, _ = command(name)
    incomplete = not options or options[-1].startswith("--") or any(PLACEHOLDER.match(word) for word in options)
    if mentioned and incomplete:
        known = help_of(name, config_class, capsys) if options_in(options) else ""
        unknown = [option for option in options_in(options) if not re.search(rf"{option}\b", known)]
        assert not unknown, f"lita {name} --help does not know {unknown}"
        return
    status = 0
    try:
        check_names(from_command_line(config_class, options, program=f"lita {name}"))
    except SystemExit as end:  # of --help, or of an option that does not exist
        status = end.code
    assert status == 0, capsys.readouterr().err


FILE = re.compile(r'"(?:parameters|weights)": "[^"]*"')


def check_names(config):
    """Check that every competitor that a command names is known; files that the reader has to write are left out."""
    pool = getattr(config, "pool", None)
    named = [getattr(config, field, ()) for field in ("competitors", "against", "opponents", "names")]
    if isinstance(config, TuneConfig):
        named[-1] = ()  # names of parameters
    named += [(config.agent,)] if isinstance(config, ArenaConfig) else []
    named += [pool.competitors, pool.held_out] if pool is not None else []
    for name in (name for names in named for name in names if not PLACEHOLDER.match(name)):
        assert resolve([FILE.sub('"l4": "joint"', name)])


@functools.cache
def _help_text(name, config_class):
    import contextlib
    import io

    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.raises(SystemExit):
        from_command_line(config_class, ["--help"], program=f"lita {name}")
    return output.getvalue()


def help_of(name, config_class, capsys):
    with capsys.disabled():
        return _help_text(name, config_class)


def check_python(words, capsys, *, mentioned=False):
    """Parse a runner's options as those of its ``lita`` command; other modules must exist and define the options."""
    if words[:2] == ["-m", "hmasd"]:  # the same commands as `lita hmasd`
        check_lita(words[1:], capsys, mentioned=mentioned)
        return
    if words[0] == "-c":
        compile(words[1], "the documentation", "exec")
        return
    script = f"{words[1].replace('.', '/')}.py" if words[0] == "-m" else words[0]
    rest = words[2:] if words[0] == "-m" else words[1:]
    if script.startswith("pytest"):
        return
    forms = (script, f"{script.removesuffix('.py')}/__main__.py")  # a module, or a package that can be run
    bases = (ROOT, *ROOT.glob("packages/*/src"))
    path = next((base / form for base in bases for form in forms if (base / form).is_file()), None)
    assert path is not None, f"there is no {script}"
    stands_for = re.search(r'main\(\["([a-z-]+)", \*sys\.argv', path.read_text(encoding="utf-8"))
    if stands_for:
        check_lita([stands_for[1], *rest], capsys)
    else:
        check_known_to(options_in(rest), str(path.relative_to(ROOT)))


def check(command, capsys, *, mentioned=False):
    for first, *words in words_of(command):
        head = first.removeprefix(".venv/bin/")
        if head == "lita":
            check_lita(words, capsys, mentioned=mentioned)
        elif head == "make":
            check_make(words)
        elif head in {"python", "python3"}:
            check_python(words, capsys, mentioned=mentioned)
        elif head.startswith("./"):
            assert (ROOT / head).is_file(), f"there is no {head}"
        elif head in {"ray", "tensorboard", "pytest"}:
            assert (Path(sys.executable).parent / head).is_file(), f"{head} is not installed"
        else:
            assert head in ELSEWHERE, f"{head!r} is not a command that a reader has installed"


def page_id(page):
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if in_blocks(p.read_text(encoding="utf-8"))], ids=page_id)
def test_every_line_of_a_block_parses(page, capsys):
    for line in in_blocks(page.read_text(encoding="utf-8")):
        check(line, capsys)


@pytest.mark.parametrize("page", [p for p in PAGES if in_text(p.read_text(encoding="utf-8"))], ids=page_id)
def test_every_command_in_running_text_exists(page, capsys):
    for line in in_text(page.read_text(encoding="utf-8")):
        check(line, capsys, mentioned=True)


def test_the_page_of_commands_is_complete():
    commands = in_text((ROOT / "docs/reference/commands.md").read_text(encoding="utf-8"))
    listed = {" ".join(word for word in command.split() if word.islower()) for command in commands}
    assert {f"lita {name}" for name in COMMANDS} - listed - {"lita runs"} == set()
    assert "lita runs list" in listed
    assert {f"make {target}" for target in make_targets()} - listed == set()


@pytest.mark.parametrize(
    "command",
    [
        "lita conquer",
        ".venv/bin/lita conquer",
        "lita collect --no-such-option",
        "lita collect --configs many",
        "lita collect --competitors PenguinAgnet",
        "lita explain 1 2",
        "python -m runners.hrl_data_runner --no-such-option",
        "python -m runners.nobody",
        "make no-such-target",
        "make bench-nothing",
        'make bench-world ARGS="--no-such-option"',
        "sl --accident",
    ],
)
def test_a_wrong_command_fails(command, capsys):
    from apexrl.runs.errors import ConfigurationError

    with pytest.raises((AssertionError, ConfigurationError)):
        check(command, capsys)


def test_commands_are_read_from_blocks_and_text():
    console = "```console\n$ lita info  # shown\noutput\n```\n"
    text = f"Say `lita\nserve X`.\n\n{console}\n```bash\n# no\nmake run \\\n  ARGS=--x\n```\n"
    assert in_blocks(text) == ["lita info  # shown", "make run ARGS=--x"]
    assert in_text(text) == ["lita serve X"]
    assert words_of("A=1 lita serve --token \"$(python -c 'f(g())')\" | head  # now") == [
        ["lita", "serve", "--token", "WORD"],
        ["head"],
    ]
