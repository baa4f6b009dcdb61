"""Configurations: frozen, validated, and the same from Python, YAML and flags."""

import dataclasses
import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field
from tyro.conf import Positional

from apexrl.configuration import configuration, from_command_line, from_mapping, to_mapping
from apexrl.runs.errors import ConfigurationError


@configuration
class Inner:
    """A nested part."""

    depth: Annotated[int, Field(ge=1)] = 2
    """How deep."""


@configuration
class Outer:
    """Does a thing."""

    rate: Annotated[float, Field(gt=0)] = 0.5
    """How fast; raising it finishes sooner."""
    mode: Literal["slow", "fast"] = "slow"
    """Which way."""
    inner: Inner = Inner()
    """The nested part."""


def test_a_configuration_is_frozen_and_keyword_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Outer().rate = 1.0  # type: ignore[misc]
    with pytest.raises(Exception, match=r"positional|argument"):
        Outer(1.0)  # type: ignore[misc]


def test_flags_come_over_yaml_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "outer.yaml"
    file.write_text("rate: 0.25\nmode: fast\ninner:\n  depth: 7\n")
    config = from_command_line(Outer, ["--config", str(file), "--inner.depth", "9"], "outer")
    assert (config.rate, config.mode, config.inner.depth) == (0.25, "fast", 9)
    assert from_command_line(Outer, [f"--config={file}"], "outer").inner.depth == 7
    assert from_command_line(Outer, [], "outer") == Outer()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"rat": 1.0}, "rat: unknown key, perhaps rate was meant"),
        ({"xyz": 1.0}, "xyz: unknown key; known are rate"),
        ({"inner": {"dept": 1}}, "inner.dept: unknown key"),
        ({"rate": -1}, "got -1"),
        ({"mode": "medium"}, "'medium'"),
        ({"inner": {"depth": "deep"}}, "'deep'"),
    ],
)
def test_bad_values_are_named(values: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        from_mapping(Outer, values)
    assert named in str(refused.value)


def test_bad_values_are_named_in_python_too() -> None:
    with pytest.raises(ConfigurationError, match=r"Outer is not acceptable.*rat: unknown key, perhaps rate was meant"):
        Outer(rat=1.0)  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="rate: got -1"):
        dataclasses.replace(Outer(), rate=-1)


def test_a_flag_that_breaks_a_rule_is_refused() -> None:
    with pytest.raises((ConfigurationError, SystemExit)):
        from_command_line(Outer, ["--rate", "-3"], "outer")


def test_config_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--config"):
        from_command_line(Outer, ["--config"], "outer")


def test_a_file_that_cannot_be_read_is_refused_with_one_rule_and_one_hint(tmp_path: Path) -> None:
    def refusal(name: str) -> str:
        with pytest.raises(ConfigurationError) as refused:
            from_command_line(Outer, ["--config", str(tmp_path / name)], "outer")
        return str(refused.value).replace(str(tmp_path), "F")

    (tmp_path / "broken.yaml").write_text("rate: [1")
    (tmp_path / "latin.yaml").write_bytes(b"mode: \xff")
    (tmp_path / "list.yaml").write_text("- 1")
    os.mkfifo(tmp_path / "pipe")
    must = "It must be a YAML mapping of option names to values. Correct the file or name another one."
    assert refusal("nope.yaml") == "there is no configuration file 'F/nope.yaml'. Correct the path."
    assert refusal(".") == "'F' is a folder, not a configuration file. Name a YAML file."
    assert refusal("pipe") == (
        "'F/pipe' is no regular file. Pipes, devices and folders are not read. Name another file."
    )
    assert refusal("list.yaml") == f"configuration file 'F/list.yaml' holds a list. {must}"
    for name, why in (("broken.yaml", "expected ',' or ']'"), ("latin.yaml", "invalid start byte")):
        text = refusal(name)
        assert text.startswith(f"configuration file 'F/{name}' is not valid YAML: ")
        assert why in text
        assert text.endswith(must)
        assert text.count("orrect") == 1


@given(st.floats(1e-6, 1e6), st.sampled_from(["slow", "fast"]), st.integers(1, 99))
def test_plain_values_round_trip(rate: float, mode: Literal["slow", "fast"], depth: int) -> None:
    config = Outer(rate=rate, mode=mode, inner=Inner(depth=depth))
    assert from_mapping(Outer, to_mapping(config)) == config


def test_a_field_named_config_takes_the_flag() -> None:
    @configuration
    class Command:
        """Do something."""

        config: Path | None = None
        """A file of the command's own."""

    assert from_command_line(Command, ["--config", "own.yaml"], "command").config == Path("own.yaml")


@configuration
class Extended(Inner):
    """Inherits an option."""

    width: int = 3
    """How wide."""


def test_inherited_options_are_flat_and_come_last(capsys: pytest.CaptureFixture[str]) -> None:
    config = from_command_line(Extended, ["--depth", "5"], "extended")
    assert list(to_mapping(config).items()) == [("width", 3), ("depth", 5)]
    assert [field.name for field in dataclasses.fields(Extended)] == ["width", "depth"]
    assert from_mapping(Extended, {"depth": 5}) == config == dataclasses.replace(Extended(), depth=5)
    with pytest.raises(ConfigurationError, match="depth: got 0"):
        from_mapping(Extended, {"depth": 0})
    with pytest.raises(SystemExit):
        from_command_line(Extended, ["--help"], "extended")
    page = capsys.readouterr().out
    assert page.index("--width") < page.index("--depth") < page.index("How deep")


def test_a_value_that_breaks_a_rule_is_refused_once_in_the_users_words(capsys):
    with pytest.raises(ConfigurationError) as error:
        from_command_line(_Ruled, ["--max-steps", "-1"], program="train")
    assert str(error.value) == (
        "the command line is not acceptable. It breaks a rule: --max-steps: got -1; it should be greater than or equal "
        "to 1. Correct the entry or remove it."
    )
    assert capsys.readouterr() == ("", "")


def test_help_and_unknown_flags_are_still_printed(capsys):
    with pytest.raises(SystemExit) as leaving:
        from_command_line(_Ruled, ["--help"], program="train")
    assert leaving.value.code == 0
    assert "--max-steps" in capsys.readouterr().out
    with pytest.raises(SystemExit) as leaving:
        from_command_line(_Ruled, ["--max-stpes", "1"], program="train")
    assert leaving.value.code == 2
    assert "--max-steps" in capsys.readouterr().err


@configuration
class _Ruled:
    """Options with a rule."""

    max_steps: Annotated[int, Field(ge=1)] = 1
    """Steps."""


@configuration
class _Play:
    """Play a checkpoint."""

    model_path: Annotated[Path, Positional]
    """The checkpoint."""
    task: Annotated[str, Positional]
    """What to play."""
    episodes: Annotated[int, Field(ge=1)] = 3
    """How often."""
    skills: tuple[str, ...] = ()
    """Which skills."""
    inner: Inner = Inner()
    """The nested part."""

    def __post_init__(self) -> None:
        if self.task == "endless" and self.episodes > 1:
            raise ValueError(f"task={self.task!r} has one episode, got episodes={self.episodes}")


def test_a_file_may_leave_required_options_to_the_flags(tmp_path: Path) -> None:
    file = tmp_path / "play.yaml"
    file.write_text("episodes: 5\ninner:\n  depth: 7\n")
    played = _Play(model_path=Path("X"), task="maze", episodes=5, inner=Inner(depth=7))

    assert from_command_line(_Play, ["X", "maze", "--config", str(file)], "play") == played
    file.write_text("episodes: 5\ninner:\n  depth: 7\nmodel_path: X\ntask: maze")
    assert from_command_line(_Play, ["--config", str(file)], "play") == played
    assert from_command_line(_Play, ["Y", "--config", str(file)], "play").model_path == Path("Y")


def test_what_neither_the_file_nor_the_flags_give_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "play.yaml"
    file.write_text("task: maze")
    with pytest.raises(SystemExit):
        from_command_line(_Play, ["--config", str(file)], "play")
    asked = capsys.readouterr().err
    assert "The checkpoint." in asked
    assert "What to play." not in asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("episods: 5", "play.yaml' is not acceptable.*episods: unknown key, perhaps episodes was meant"),
        ("episodes: 0", "play.yaml' is not acceptable.*episodes: got 0"),
        ("inner: {depth: 0}", "play.yaml' is not acceptable.*inner.depth: got 0"),
        ("task: endless", "task='endless' has one episode, got episodes=3"),
    ],
)
def test_a_file_without_its_required_options_is_checked_all_the_same(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "play.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=words) as refused:
        from_command_line(_Play, ["X", "--config", str(tmp_path / "play.yaml")], "play")
    assert "required" not in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        "X maze --skills a b",
        "--model-path X maze --skills a b",
        "--skills a b --task=maze --model-path=X",
        "--task maze --skills a b --model_path X",
    ],
)
def test_positional_arguments_may_be_named(words: str) -> None:
    wanted = _Play(model_path=Path("X"), task="maze", skills=("a", "b"))
    assert from_command_line(_Play, words.split(), "play") == wanted


def test_names_of_positional_arguments_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="--task maze is named and model_path, which comes before it, is not"):
        from_command_line(_Play, ["X", "--task", "maze"], "play")
    with pytest.raises(ConfigurationError, match=r"--model-path has no value.*Write --model-path MODEL_PATH"):
        from_command_line(_Play, ["--model-path"], "play")
