"""The command line: fast help, clear refusals, and options from defaults, YAML and flags."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lita.main import COMMANDS, main

LITA = Path(sys.executable).parent / "lita"


def test_help_takes_less_than_a_second_and_lists_every_command() -> None:
    best = float("inf")
    for _ in range(5):  # the best of five, since the machine may be busy
        start = time.perf_counter()
        done = subprocess.run([LITA, "--help"], capture_output=True, text=True, check=True)
        best = min(best, time.perf_counter() - start)
    assert best < 1.0
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main([*name.split(), "--help"])
    assert exit_info.value.code == 0
    text = capsys.readouterr().out
    assert f"lita {name}" in text
    assert "--config" in text


def test_unknown_command_is_named_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dmeo"]) == 2
    message = capsys.readouterr().err
    assert "'dmeo'" in message
    assert "demo" in message


def test_unknown_flag_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["info", "--jsno"])
    assert exit_info.value.code == 2
    assert "--jsno" in capsys.readouterr().err


def test_flags_override_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "info.yaml"
    file.write_text("json: true\n")
    assert main(["info", "--config", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["versions"]["litaagent"]
    assert main(["info", "--config", str(file), "--no-json"]) == 0
    with pytest.raises(json.JSONDecodeError):
        json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("jsno: true\n", "jsno: unknown key"),
        ("json: 17\n", "got 17"),
        ("- json\n", "list"),
        ("a: [\n", "not valid YAML"),
    ],
)
def test_bad_yaml_is_refused_with_the_reason(
    content: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    assert main(["info", "--config", str(file)]) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert str(file) in message


def test_missing_yaml_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--config", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["dataset"], ["dataset", "--help"], ["hmasd", "-h", "--json"]])
def test_a_group_lists_its_commands(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    printed = capsys.readouterr().out
    own = [name for name in COMMANDS if name.startswith(f"{words[0]} ")]
    assert all(f"  {name} " in printed for name in own)


def test_a_misspelt_command_of_a_group_is_answered_by_close_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset", "biuld"]) == 2
    assert "did you mean dataset build" in capsys.readouterr().err


def test_a_closed_pipe_does_not_end_the_work() -> None:
    with subprocess.Popen([LITA, "info", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.close()
        assert program.stderr is not None
        assert program.stderr.read() == b""
        assert program.wait(timeout=60) == 0


@pytest.mark.parametrize(("path", "message"), [("/dev/zero", "regular file"), ("/", "is a folder")])
def test_what_is_no_file_is_refused(path: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--config", path]) == 2
    assert message in capsys.readouterr().err


def test_a_yaml_bomb_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]
    (tmp_path / "bomb.yaml").write_text("\n".join(lines))
    assert main(["info", "--config", str(tmp_path / "bomb.yaml")]) == 2
    assert "aliases" in capsys.readouterr().err
