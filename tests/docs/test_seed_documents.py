"""Check every row of the page that maps the five documents to this project.

Rows of the kind ``run`` start the command at a tiny scale and look at what it prints, logs and writes.
"""

import functools
import importlib
import inspect
import re
import subprocess
from pathlib import Path

import pytest
from tests.warm_python import environment

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/seed_documents.md"
ROW = re.compile(
    r"^\| (?P<term>.+?) \| (?P<here>.+?) \| (?P<check>import|parameter|option|command|file|text|run) \|$", re.MULTILINE
)
ROWS = [match.groupdict() for match in ROW.finditer(PAGE.read_text(encoding="utf-8"))]
CODE = re.compile(r"`([^`]+)`")

COLLECT = "--competitors GreedyStd RandomStd --configs 4 --runs 1 --steps 5 --levels 2 --executor inline --quiet"
TRAIN = """--phases l2 l3 --data-dir records --agent-name Greedy --num-workers 1 --split-ratios 0.5 0.25 0.25
    --l2-epochs 1 --l3-epochs 1 --l2-batch-size 64 --l3-batch-size 256 --backfill-folds 2 --eval-max-rows 300"""
SKILLS = """--set task=uav_coverage n_agents=3 num_envs=4 batch_size=40 max_episode_steps=9 k=4 hidden_size=16
    ppo_epochs=2 discriminator_epochs=2 total_steps=80 eval_interval=80 eval_episodes=4 checkpoint_interval=40"""
RUNNER = """
import gymnasium, torch
from apexrl import GymVecEnv, OnPolicyRunner, PPOConfig

class Components(GymVecEnv):
    def step(self, actions):
        obs, rewards, dones, extras = super().step(actions)
        return obs, rewards, dones, {**extras, "reward_components": {"upright": rewards}}

env = Components([lambda: gymnasium.make("CartPole-v1")] * 2)
cfg = PPOConfig(num_steps=64, num_epochs=1)
runner = OnPolicyRunner(env=env, cfg=cfg, log_dir="logs", save_dir="checkpoints", log_interval=1)
for event in ("pre_iteration", "post_iteration", "pre_rollout", "post_rollout", "pre_update", "post_update"):
    runner.add_callback(event, lambda runner, *stats, event=event: print("callback", event))
runner.learn(total_timesteps=256)
print(*runner.eval(num_episodes=2))
print(*GymVecEnv.step(env, torch.zeros(2, dtype=torch.long))[3])
"""


def left_in(folder):
    """Return the names of all files below a folder, the text of logs, and the tags of TensorBoard's events."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    texts = [str(path.relative_to(folder)) for path in files]
    texts += [path.read_text(encoding="utf-8") for path in files if path.suffix in {".log", ".out", ".jsonl"}]
    for path in files:
        if "tfevents" in path.name:
            events = EventAccumulator(str(path))
            events.Reload()
            texts += events.Tags()["scalars"]
    return "\n".join(texts)


@pytest.fixture(scope="module")
def run(warm_python):
    """Return a function that runs a program in a folder and returns what it prints."""

    def run(*words, folder):
        done = warm_python.run(*words, folder=folder)
        assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="module")
def help_of(run):
    """Return a function that gives the help of a command."""

    @functools.cache
    def help_of(command):
        words = command.split()
        if words[0].endswith(".sh"):
            options = {"capture_output": True, "text": True, "check": True, "env": environment()}
            return subprocess.run([ROOT / words[0], "--help"], **options).stdout
        return run(*(["python"] if words[0].endswith(".py") else []), *words, "--help", folder=ROOT)

    return help_of


@pytest.fixture(scope="module")
def evidence(run, tmp_path_factory):
    """Return a function that gives what a command prints, logs and writes; each command runs once."""

    @functools.cache
    def league():
        folder = tmp_path_factory.mktemp("league")
        printed = run("lita", "collect", *COLLECT.split(), "--output-dir", "records", folder=folder)
        return folder, printed + left_in(folder)

    @functools.cache
    def trained():
        folder, _ = league()
        printed = run("python", ROOT / "runners/run_hrl_bc_awr_train.py", *TRAIN.split(), folder=folder)
        return folder, printed + left_in(folder)

    @functools.cache
    def evidence_of(command):
        folder = tmp_path_factory.mktemp("run")
        match command:
            case "lita collect":
                return league()[1]
            case "lita train":
                return trained()[1]
            case "scripts/eval_l2_val_error.py":
                folder, _ = trained()
                [runs] = folder.glob("training_runs/*")
                options = ["--output-dir", runs, "--split", "val", "--num-workers", "1", "--agent-name", "Greedy"]
                return run("python", ROOT / command, *options, folder=folder)
            case "OnPolicyRunner":
                return run("python", "-c", RUNNER, folder=folder) + left_in(folder)
            case "train_sync_enhanced.py":
                return run("python", ROOT / command, *SKILLS.split(), folder=folder) + left_in(folder)
        raise AssertionError(f"this test cannot run {command!r}")

    return evidence_of


def resolved(path):
    module, _, name = path.partition(":")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def terms(text):
    return CODE.findall(text) or [text]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['term']} {row['here']}".replace("`", ""))
def test_the_row_is_true(row, evidence, help_of):
    here = CODE.findall(row["here"])
    match row["check"]:
        case "import":
            assert resolved(here[0]) is not None
        case "parameter":
            assert set(terms(row["term"])) <= set(inspect.signature(resolved(here[0])).parameters)
        case "option":
            option, command = (here[0], here[1]) if len(here) == 2 else (terms(row["term"])[0], here[0])
            assert re.search(rf"{re.escape(option)}\b", help_of(command))
        case "command":
            assert help_of(here[0])
        case "file":
            assert (ROOT / here[0]).exists()
        case "text":
            content = (ROOT / here[0]).read_text(encoding="utf-8")
            assert [term for term in terms(row["term"]) if term not in content] == []
        case "run":
            output = evidence(here[0])
            assert [term for term in terms(row["term"]) if term not in output] == []


def test_no_other_file_mentions_the_documents():
    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("packages/*/README.md")]
    sources = [path for package in ROOT.glob("packages/*/src") for path in package.rglob("*.py")]
    mentions = [
        str(path.relative_to(ROOT))
        for path in [*pages, *sources]
        if path != PAGE
        and "_build" not in path.parts
        and path.name != "CHANGELOG.md"
        and re.search(r"[Dd]ocument 00\d", path.read_text(encoding="utf-8"))
    ]
    assert mentions == []
