"""The package's public names, its aliases and ``python -m hmasd``."""

import importlib
import subprocess
import sys

import pytest

import hmasd
from hmasd.__main__ import main


def test_every_public_name_can_be_imported():
    assert all(getattr(hmasd, name) is not None for name in hmasd.__all__)
    assert set(hmasd.__all__) <= set(dir(hmasd))
    with pytest.raises(AttributeError, match="no attribute 'HMASD'"):
        _ = hmasd.HMASD


def test_importing_the_package_is_light():
    code = "import sys, hmasd; print([name for name in ('torch', 'numpy', 'pettingzoo') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("hmasd.agent", ["HMASDAgent"]),
        ("hmasd.networks", ["SkillCoordinator", "SkillDiscoverer", "Discriminators"]),
        ("hmasd.utils", ["Rollout", "SkillClock", "cut_intervals", "gae", "one_hot"]),
        ("hmasd.config", ["HMASDConfig", "preset", "load_config"]),
    ],
)
def test_modules_hold_what_their_names_say(module, names):
    loaded = importlib.import_module(module)
    assert all(hasattr(loaded, name) for name in names)


def test_the_command_lists_its_commands_and_refuses_others(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("train", "eval", "render", "settings"))
    assert main(["play"]) == 2
    assert "there is no command 'play'; choose one of: train, eval, render, settings" in capsys.readouterr().err
    assert main(["trian"]) == 2
    assert "there is no command 'trian'; did you mean train?" in capsys.readouterr().err


def test_settings_are_printed_with_the_values_of_a_preset(capsys):
    assert main(["settings", "--preset", "paper"]) == 0
    out = capsys.readouterr().out
    assert "skill_steps" in out
    assert "50" in out
    assert main(["settings", "--preset", "papr"]) == 2
    assert "there is no preset 'papr'" in capsys.readouterr().err


def test_settings_are_printed_with_the_values_of_a_file(tmp_path, capsys):
    file = tmp_path / "config_2.py"
    file.write_text("batch_size = 4096\n")
    assert main(["settings", "--config", str(file)]) == 0
    assert "4096" in capsys.readouterr().out
    assert main(["settings", "--config", str(file), "--preset", "paper"]) == 2
    assert "exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["any.pth"], ["--model-path", "any.pth"], ["--model-path=any.pth"]])
@pytest.mark.parametrize("command", ["eval", "render"])
def test_the_checkpoint_stands_alone_or_after_its_option_of_train(tmp_path, monkeypatch, capsys, command, words):
    monkeypatch.chdir(tmp_path)
    assert main([command, *words]) == 2
    assert "there is no checkpoint 'any.pth'" in capsys.readouterr().err


def test_pictures_are_drawn_only_if_the_metrics_exist(tmp_path, capsys):
    assert main(["render", str(tmp_path / "any.pth"), "--metrics", str(tmp_path / "missing.jsonl")]) == 2
    assert "there is no such file" in capsys.readouterr().err
