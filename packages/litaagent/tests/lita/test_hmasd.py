"""``lita hmasd train``, ``eval``, ``render`` and ``settings``."""

import json
from dataclasses import fields

import pytest

from hmasd.config import HMASDConfig, list_settings
from lita.main import main

SMALL = ["task=uav_coverage", "n_agents=3", "num_envs=4", "batch_size=40", "max_episode_steps=9", "hidden_size=16"]
SMALL += ["ppo_epochs=1", "discriminator_epochs=1", "total_steps=80", "eval_episodes=4", "eval_deterministic=true"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("run")
    assert main(["hmasd", "train", "--folder", str(folder), "--log-level", "ERROR", "--set", *SMALL]) == 0
    return folder


def evaluated(capsys, *words):
    assert main(["hmasd", "eval", *map(str, words)]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_evaluation_takes_its_options_from_the_training_unless_given(trained, capsys):
    final = trained / "models" / "hmasd_sync_enhanced_final.pth"
    as_trained = evaluated(capsys, final)
    assert evaluated(capsys, final, "--deterministic", "True") == as_trained
    assert evaluated(capsys, final, "--deterministic", "False") != as_trained
    assert evaluated(capsys, final, "--episodes", "2") != as_trained


@pytest.mark.parametrize("words", [["any.pth"], ["--model-path", "any.pth"], ["--model-path=any.pth"]])
@pytest.mark.parametrize("command", ["eval", "render"])
def test_the_checkpoint_stands_alone_or_after_its_option_of_train(tmp_path, monkeypatch, capsys, command, words):
    monkeypatch.chdir(tmp_path)
    assert main(["hmasd", command, *words]) == 2
    assert "there is no checkpoint 'any.pth'" in capsys.readouterr().err


def test_a_settings_file_of_eval_may_leave_the_checkpoint_to_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.yaml").write_text("episodes: 2")
    assert main(["hmasd", "eval", "any.pth", "--config", "e.yaml"]) == 2
    assert "there is no checkpoint 'any.pth'" in capsys.readouterr().err


def test_render_draws_all_pictures_or_none(trained, tmp_path, capsys):
    final, album = trained / "models" / "hmasd_sync_enhanced_final.pth", tmp_path / "album"
    words = ["hmasd", "render", str(final), "--out", str(album), "--metrics"]
    assert main([*words, str(tmp_path / "missing.jsonl")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert not album.exists()
    assert main([*words, str(trained / "logs" / "metrics.jsonl")]) == 0
    assert {"episode.svg", "evaluation.svg"} <= {path.name for path in album.iterdir()}


def test_every_setting_is_listed_with_its_meaning(capsys):
    listed = list_settings()
    assert [setting.name for setting in listed] == [field.name for field in fields(HMASDConfig)]
    assert all(setting.meaning.endswith(".") for setting in listed)
    assert {setting.name: setting.symbol for setting in listed}["skill_steps"] == "k"
    assert main(["hmasd", "settings", "--preset", "paper"]) == 0
    out = capsys.readouterr().out
    assert "skill_steps" in out
    assert "50" in out
    assert main(["hmasd", "settings", "--preset", "papr"]) == 2


def test_a_group_without_a_command_lists_its_commands(capsys):
    assert main(["hmasd"]) == 0
    out = capsys.readouterr().out
    assert all(f"  hmasd {name} " in out for name in ("train", "eval", "render", "settings"))
