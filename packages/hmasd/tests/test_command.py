import json
import logging
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from apexrl.configuration import to_mapping
from apexrl.runs.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from apexrl.runs.errors import ConfigMismatchError, ConfigurationError
from apexrl.runs.metrics.jsonl import read_jsonl
from hmasd.command import EvalCommand, TrainCommand, evaluate, settings_of, train
from hmasd.config import plain_number
from hmasd.training.trainer import FINAL_NAME, SCHEMA, Trainer

SMALL = (
    "task=uav_coverage",  # whose returns depend on every weight
    "n_agents=3",
    "num_envs=4",
    "batch_size=40",
    "max_episode_steps=9",
    "k=4",
    "hidden_size=16",
    "ppo_epochs=2",
    "discriminator_epochs=2",
    "total_steps=120",
    "eval_interval=80",
    "eval_episodes=4",
    "checkpoint_interval=40",
)


def _changed(*words):
    """Return the small settings with some of them changed."""
    names = tuple(word.split("=")[0] + "=" for word in words)
    return (*(word for word in SMALL if not word.startswith(names)), *words)


def start(tmp_path, *words):
    """Start ``python -m hmasd train`` in ``tmp_path``."""
    return subprocess.Popen(
        [sys.executable, "-m", "hmasd", "train", *words],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_train_evaluate_and_resume(tmp_path, capsys):
    command = TrainCommand(set=SMALL, folder=tmp_path, log_level="WARNING")
    assert train(command) == 0
    trained = json.loads(capsys.readouterr().out.splitlines()[-1])
    final = tmp_path / "models" / "hmasd_sync_enhanced_final.pth"
    assert train(TrainCommand(model_path=final, eval_only=True)) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == trained
    assert list((tmp_path / "tf-logs").glob("events.out.tfevents.*"))
    whole = (tmp_path / "logs" / "metrics.jsonl").read_bytes()

    marked = tmp_path / "models" / "hmasd_sync_enhanced_80.pth"
    assert train(TrainCommand(model_path=marked, folder=tmp_path, log_level="WARNING")) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == trained
    assert (tmp_path / "logs" / "metrics.jsonl").read_bytes() == whole
    assert (tmp_path / "models" / "hmasd_sync_enhanced_120.pth.set-aside").exists()


def test_evaluation_in_a_fresh_process_gives_what_training_gave(tmp_path, capsys, warm_python):
    train(TrainCommand(set=SMALL, folder=tmp_path, log_level="WARNING"))
    trained = json.loads(capsys.readouterr().out.splitlines()[-1])
    words = ("--eval-only", "--model-path", "models/hmasd_sync_enhanced_final.pth")
    done = warm_python.run("python", "-m", "hmasd", "train", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == trained
    train(TrainCommand(set=(*SMALL, "seed=1"), folder=tmp_path / "other", log_level="WARNING"))
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) != trained, "the returns of the two policies differ"


def test_a_killed_run_resumes_to_the_same_end(tmp_path, capsys):
    words = tuple(word for word in SMALL if not word.startswith(("total_steps", "eval_interval")))
    words += ("total_steps=800", "eval_interval=400", "keep_checkpoints=2")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert train(TrainCommand(set=words, folder=whole, log_level="ERROR")) == 0
    killed.mkdir()
    process = start(killed, "--preset", "paper", "--set", *_as_preset(words))
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not list(killed.glob("models/*_[0-9]*.pth")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    assert not (killed / "models" / "hmasd_sync_enhanced_final.pth").exists(), "killed before the end"
    assert train(TrainCommand(set=words, folder=killed, log_level="ERROR")) == 0, "the same settings: it resumes"
    assert (killed / "logs" / "metrics.jsonl").read_bytes() == (whole / "logs" / "metrics.jsonl").read_bytes()
    assert not (killed / "earlier").exists()


def test_a_finished_run_is_not_trained_again(tmp_path, capsys):
    command = TrainCommand(set=SMALL, folder=tmp_path, log_level="INFO")
    train(command)
    trained = json.loads(capsys.readouterr().out.splitlines()[-1])
    before = _content(tmp_path)
    assert train(command) == 0
    out = capsys.readouterr().out
    assert json.loads(out.splitlines()[-1]) == trained
    assert "同步更新" not in out
    assert _content(tmp_path) == before


def test_a_run_killed_before_its_final_checkpoint_gets_it_from_the_same_command(tmp_path, capsys):
    command = TrainCommand(set=SMALL, folder=tmp_path, log_level="ERROR")
    train(command)
    trained = json.loads(capsys.readouterr().out.splitlines()[-1])
    metrics = (tmp_path / "logs" / "metrics.jsonl").read_bytes()
    final = tmp_path / "models" / "hmasd_sync_enhanced_final.pth"
    expected = load_checkpoint(final, SCHEMA).state
    final.unlink()
    assert train(command) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == trained
    state = load_checkpoint(final, SCHEMA).state
    assert state["total_timesteps"] == expected["total_timesteps"] == 120
    assert torch.equal(state["learner"]["generator"], expected["learner"]["generator"])
    assert (tmp_path / "logs" / "metrics.jsonl").read_bytes() == metrics
    assert not (tmp_path / "earlier").exists()


def test_a_finished_run_resumes_if_total_steps_is_raised(tmp_path):
    at_once, in_two = tmp_path / "at_once", tmp_path / "in_two"
    for steps, folder in ((200, at_once), (120, in_two), (200, in_two)):
        words = _changed(f"total_steps={steps}")
        assert train(TrainCommand(set=words, folder=folder, log_level="ERROR")) == 0
    updates = [
        [
            {name: value for name, value in row.items() if not name.startswith("Eval/")}  # the shorter run's end
            for row in read_jsonl(folder / "logs" / "metrics.jsonl")
        ]
        for folder in (at_once, in_two)
    ]
    assert updates[0] == updates[1]
    assert [row["Sync/PolicyVersion"] for row in updates[0] if "Sync/PolicyVersion" in row] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("changed", [{"set": (*SMALL, "lr=0.01")}, {"fresh": True}])
def test_another_run_in_the_same_folder_leaves_the_earlier_one_whole(tmp_path, changed):
    first = {"set": SMALL, "folder": tmp_path, "log_level": "ERROR"}
    train(TrainCommand(**first))
    for name in ("tensorboard.log", "metrics.jsonl.set-aside"):  # the start script's, and of a run that went back
        (tmp_path / "logs" / name).write_text("of the first run")
    before = _content(tmp_path)
    assert train(TrainCommand(**first | changed)) == 0
    assert train(TrainCommand(**first | changed | {"fresh": True})) == 0
    assert (tmp_path / "models" / "hmasd_sync_enhanced_final.pth").exists()
    assert sorted(path.name for path in (tmp_path / "earlier").iterdir()) == ["1", "2"]
    assert _content(tmp_path / "earlier" / "1") == before
    assert (tmp_path / "earlier" / "1" / "logs" / "tensorboard.log").read_text() == "of the first run"
    assert not (tmp_path / "logs" / "tensorboard.log").exists()


def test_a_checkpoint_from_elsewhere_does_not_mix_with_the_run_in_the_folder(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    train(TrainCommand(set=(*SMALL, "seed=1"), folder=there, log_level="ERROR"))
    train(TrainCommand(set=SMALL, folder=here, log_level="ERROR"))
    before = _content(here)
    foreign = there / "models" / "hmasd_sync_enhanced_80.pth"
    assert train(TrainCommand(model_path=foreign, folder=here, log_level="ERROR")) == 0
    assert _content(here / "earlier" / "1") == before
    assert [row["step"] for row in read_jsonl(here / "logs" / "metrics.jsonl")] == [84, 120]


def test_settings_that_cannot_run_touch_nothing(tmp_path):
    train(TrainCommand(set=SMALL, folder=tmp_path, log_level="ERROR"))
    before = _content(tmp_path)
    with pytest.raises(ConfigurationError, match="there is no task 'nope'"):
        train(TrainCommand(set=_changed("task=nope"), folder=tmp_path, log_level="ERROR"))
    assert _content(tmp_path) == before


def test_a_checkpoint_does_not_decide_what_is_imported(tmp_path):
    words = _changed("task=pettingzoo:mpe2.simple_spread_v3", "n_agents=null")
    train(TrainCommand(set=words, folder=tmp_path, log_level="ERROR"))
    final = tmp_path / "models" / "hmasd_sync_enhanced_final.pth"
    for changes in ((), ("eval_episodes=2",)):
        with pytest.raises(ConfigurationError, match="does not decide what is imported"):
            train(TrainCommand(model_path=final, eval_only=True, set=changes))
    assert train(TrainCommand(model_path=final, eval_only=True, set=("task=pettingzoo:mpe2.simple_spread_v3",))) == 0
    with pytest.raises(ConfigMismatchError, match="task"):
        train(TrainCommand(model_path=final, eval_only=True, set=("task=pettingzoo:mpe2.simple_tag_v3",)))


def test_fresh_and_a_checkpoint_exclude_each_other(tmp_path):
    with pytest.raises(ConfigurationError, match="give one of them"):
        train(TrainCommand(model_path=tmp_path / "any.pth", fresh=True, folder=tmp_path))


def _content(folder):
    """What a run leaves that is not a log for reading."""
    names = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".log", ".lock"}]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in names}


def _as_preset(words):
    """All settings of a run without a preset, so that they can be given over one."""
    config = to_mapping(settings_of(TrainCommand(set=words)))
    return [f"{name}={json.dumps(value)}" for name, value in config.items()]


def test_options_that_would_change_nothing_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="--fresh starts a new run"):
        train(TrainCommand(eval_only=True, model_path=tmp_path / "any.pth", fresh=True))
    with pytest.raises(ConfigurationError, match="name a checkpoint that has them by --skills-from"):
        train(TrainCommand(set=("freeze_skills=true",), folder=tmp_path))


def test_a_setting_given_twice_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="--set gives skill_steps twice, as 5 and as 6; keep one"):
        train(TrainCommand(set=("k=5", "skill_steps=6"), folder=tmp_path))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("skill_step=5", "skill_step: unknown key, perhaps skill_steps was meant"),
        ("lambda_e=.inf", "lambda_e: got inf; it should be a finite number"),
        ("lr=.nan", "lr: got nan"),
        ("device=banana", "device='banana' cannot be used.*a GPU if torch finds one"),
        ("device=meta", "device='meta' cannot be used"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_their_own_name(tmp_path, word, message):
    with pytest.raises(ConfigurationError, match=f"(?i){message}") as refused:
        train(TrainCommand(set=(word,), folder=tmp_path / "run"))
    assert "--skill" not in str(refused.value)
    assert not (tmp_path / "run" / "models").exists()


def test_an_error_in_a_change_is_not_blamed_on_what_is_changed(tmp_path):
    with pytest.raises(ConfigurationError, match="preset 'paper' with changed settings is not acceptable"):
        settings_of(TrainCommand(preset="paper", set=("algorithm=hmsd",)))
    train(TrainCommand(set=SMALL, folder=tmp_path))
    final = tmp_path / "models" / FINAL_NAME
    with pytest.raises(ConfigurationError, match=f"{FINAL_NAME}' with changed settings is not acceptable"):
        settings_of(TrainCommand(model_path=final, set=("batch_size=41",)))


@pytest.mark.parametrize(("word", "value"), [("1e6", 1_000_000), ("2.5e+3", 2500), ("1e-4", 1e-4), ("-3e2", -300)])
def test_numbers_with_an_exponent_are_numbers(word, value):
    assert plain_number(word) == value
    assert type(plain_number(word)) is type(value)
    assert plain_number("e6") == "e6"
    assert plain_number("1e6b") == "1e6b"


def test_a_file_and_the_command_line_take_them(tmp_path):
    (tmp_path / "run.yaml").write_text("total_steps: 2e5\nlr: 1e-3\n")
    config = settings_of(TrainCommand(config=tmp_path / "run.yaml", set=("eval_interval=1e4",)))
    assert (config.total_steps, config.lr, config.eval_interval) == (200_000, 1e-3, 10_000)


def test_a_run_of_a_checkpoint_names_the_checkpoint_that_continues_it(tmp_path, capsys, monkeypatch):
    train(TrainCommand(set=SMALL, folder=tmp_path, log_level="ERROR"))
    run = Trainer.learn

    def stopped(trainer, **_):
        return replace(run(trainer, num_iterations=1), stopped_by="signal")

    monkeypatch.setattr(Trainer, "learn", stopped)
    first = tmp_path / "models" / "hmasd_sync_enhanced_40.pth"
    train(TrainCommand(model_path=first, folder=tmp_path))
    newest = tmp_path / "models" / "hmasd_sync_enhanced_80.pth"
    assert f"已保存: 步数 80; 用 --model-path {newest} 继续" in capsys.readouterr().out
    assert newest.is_file()
    train(TrainCommand(model_path=newest, folder=tmp_path))
    assert "已保存: 步数 120" in capsys.readouterr().out


def test_another_task_than_the_checkpoints_is_refused_in_the_words_of_eval(tmp_path):
    train(TrainCommand(set=SMALL, folder=tmp_path))
    final = tmp_path / "models" / FINAL_NAME
    with pytest.raises(ConfigurationError, match="--task uav_relay: the checkpoint is of task uav_coverage"):
        evaluate(EvalCommand(model_path=final, task="uav_relay"))


def test_settings_are_put_together(tmp_path):
    assert settings_of(TrainCommand()) is None
    assert settings_of(TrainCommand(preset="paper", set=("seed=7",))).seed == 7
    (tmp_path / "settings.py").write_text("n_Z = 4\nseed = 5\n")
    config = settings_of(TrainCommand(config=tmp_path / "settings.py", set=("n_Z=9",)))
    assert (config.n_team_skills, config.seed) == (9, 5)
    with pytest.raises(ConfigurationError, match="give one of them"):
        settings_of(TrainCommand(preset="paper", config=tmp_path / "settings.py"))
    with pytest.raises(ConfigurationError, match="of the form name=value"):
        settings_of(TrainCommand(set=("seed",)))
    with pytest.raises(ConfigurationError, match="is not a plain value"):
        settings_of(TrainCommand(set=("lr=[1",)))
    with pytest.raises(ConfigurationError, match="needs a checkpoint"):
        train(TrainCommand(eval_only=True))


def test_training_continues_when_nobody_reads_its_output(tmp_path):
    process = start(tmp_path, "--preset", "paper", "--set", *_as_preset(SMALL))
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(240) in {0, 141}
    assert "Logging error" not in err
    assert "Traceback" not in err
    assert "更新次数: 3" in (tmp_path / "logs" / "train.log").read_text()
    assert (tmp_path / "models" / "hmasd_sync_enhanced_final.pth").exists()


def test_a_run_that_diverges_says_so(tmp_path, warm_python):
    words = ("--preset", "paper", "--set", *_as_preset(_changed("lr=1e30")))
    done = warm_python.run("python", "-m", "hmasd", "train", *words, folder=tmp_path)
    err = done.stderr
    assert done.returncode == 2
    assert "a loss is nan and the norm of its gradient nan" in err
    assert "UserWarning" not in err
    assert "Lower the learning rate" in err
    assert not list(tmp_path.glob("models/*.pth")), "nothing is saved after it"
    assert "Traceback" not in err


def test_a_coordinator_is_trained_on_the_skills_of_another_run(tmp_path, capsys):
    skills, reused = tmp_path / "skills", tmp_path / "reused"
    assert train(TrainCommand(set=SMALL, folder=skills, log_level="ERROR")) == 0
    final = skills / "models" / "hmasd_sync_enhanced_final.pth"
    words = tuple(word for word in SMALL if not word.startswith(("k=", "hidden_size")))
    command = TrainCommand(set=(*words, "seed=1"), skills_from=final, folder=reused, log_level="ERROR")
    assert train(command) == 0
    before, after = (
        load_checkpoint(folder / "models" / "hmasd_sync_enhanced_final.pth", SCHEMA) for folder in (skills, reused)
    )
    assert after.config["freeze_skills"] is True
    assert (after.config["skill_steps"], after.config["hidden_size"]) == (4, 16), "as in the checkpoint"
    name = "to_action.weight"
    assert torch.equal(*(state["learner"]["low"]["networks"][name] for state in (before.state, after.state)))
    metrics = (reused / "logs" / "metrics.jsonl").read_bytes()
    (reused / "models" / "hmasd_sync_enhanced_final.pth").unlink()
    (reused / "models" / "hmasd_sync_enhanced_120.pth").unlink()
    assert train(command) == 0, "the same command resumes"
    assert (reused / "logs" / "metrics.jsonl").read_bytes() == metrics
    with pytest.raises(ConfigurationError, match=r"--skills-from .* starts a new run"):
        train(TrainCommand(model_path=final, skills_from=final, folder=tmp_path))


@pytest.fixture
def skills(tmp_path):
    """Return a function that trains skills and returns their checkpoint."""

    def make(name, *words):
        assert train(TrainCommand(set=_changed(*words), folder=tmp_path / name, log_level="ERROR")) == 0
        return tmp_path / name / "models" / FINAL_NAME

    return make


def test_settings_that_are_not_those_of_the_skills_are_refused(tmp_path, skills):
    source, folder = skills("skills"), tmp_path / "reused"
    for word, message in (
        ("n_z=5", "n_agent_skills=5, the skills need 3"),
        ("k=8", "skill_steps=8, the skills need 4"),
        ("ablation=no_team", "ablation='no_team', the skills need 'none'"),
        ("freeze_skills=false", "freeze_skills=False, the skills need True"),
    ):
        wanted = rf"--set contradicts --skills-from .*: {message}\. .* Leave \w+ out"
        with pytest.raises(ConfigurationError, match=wanted):
            train(TrainCommand(set=_changed(word), skills_from=source, folder=folder, log_level="ERROR"))
    assert not (folder / "models").exists()


def test_settings_of_the_skills_replace_those_of_a_file_and_the_log_says_which(tmp_path, skills, caplog):
    source = skills("skills", "discriminator_lipschitz=2.0")
    (tmp_path / "run.yaml").write_text("hidden_size: 32\nk: 4\ndiscriminator_lipschitz: 1.0\n")
    words = tuple(word for word in SMALL if not word.startswith(("k=", "hidden_size=")))
    command = TrainCommand(config=tmp_path / "run.yaml", set=words, skills_from=source, folder=tmp_path / "reused")
    with caplog.at_level(logging.INFO):
        assert train(command) == 0
    [line] = [line for line in caplog.messages if "settings of the skills" in line]
    assert line.endswith("replace others: hidden_size: 32 → 16, discriminator_lipschitz: 1.0 → 2.0")
    assert "keeps its own weights" not in caplog.text
    before, after = (load_checkpoint(path, SCHEMA) for path in (source, tmp_path / "reused" / "models" / FINAL_NAME))
    assert (after.config["hidden_size"], after.config["discriminator_lipschitz"]) == (16, 2.0)
    trained, reused = (state["learner"]["discriminators"]["discriminators"] for state in (before.state, after.state))
    assert trained.keys() == reused.keys()
    assert all(torch.equal(trained[name], reused[name]) for name in trained), "frozen"


def test_skills_of_a_checkpoint_without_a_setting_were_trained_with_its_default(tmp_path, skills):
    source = skills("skills")
    checkpoint = load_checkpoint(source, SCHEMA)
    del checkpoint.config["discriminator_lipschitz"]
    save_checkpoint(source, checkpoint)
    (tmp_path / "run.yaml").write_text("discriminator_lipschitz: 1.0\n")
    command = TrainCommand(config=tmp_path / "run.yaml", set=SMALL, skills_from=source, folder=tmp_path / "reused")
    assert train(command) == 0
    assert load_checkpoint(tmp_path / "reused" / "models" / FINAL_NAME, SCHEMA).config["discriminator_lipschitz"] == 0.0


def test_skills_of_another_checkpoint_are_another_run(tmp_path, skills, capsys):
    sources, folder = [skills("first"), skills("second", "seed=1")], tmp_path / "reused"
    finals, contents = [], []
    for source in sources:
        assert train(TrainCommand(set=SMALL, skills_from=source, folder=folder, log_level="ERROR")) == 0
        finals.append(load_checkpoint(folder / "models" / FINAL_NAME, SCHEMA))
        contents.append(_content(folder))
    assert _content(folder / "earlier" / "1") == contents[0], "the first run is whole"
    for source, final in zip(sources, finals, strict=True):
        name, given = "to_action.weight", load_checkpoint(source, SCHEMA)
        assert torch.equal(*(state["learner"]["low"]["networks"][name] for state in (given.state, final.state)))
    same = tmp_path / "copy.pth"
    shutil.copyfile(sources[1], same)
    assert train(TrainCommand(set=SMALL, skills_from=same, folder=folder, log_level="ERROR")) == 0
    assert _content(folder) == contents[1], "the skills are the same, wherever their file is"
    assert sorted(path.name for path in (folder / "earlier").iterdir()) == ["1"]
    again = TrainCommand(model_path=folder / "models" / FINAL_NAME, eval_only=True)
    assert train(again) == 0, "its own configuration names the skills"
