"""Scripts and folders of the root: train_sync_enhanced.py, start_sync_training.sh, config_1.py, evaltools, envs."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from apexrl.runs.metrics.jsonl import read_jsonl
from hmasd.command import TrainCommand, train
from hmasd.config import load_config

ROOT = Path(__file__).parents[2]
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


STARTED: list[subprocess.Popen[str]] = []
"""Processes of the test that runs."""


def start(tmp_path, *words, program="train_sync_enhanced.py", start_new_session=False):
    """Start a script of the root in ``tmp_path``."""
    interpreter = [sys.executable] if program.endswith(".py") else []
    process = subprocess.Popen(
        [*interpreter, str(ROOT / program), *words],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
    )
    STARTED.append(process)
    return process


@pytest.fixture(autouse=True)
def nothing_is_left_running():
    """Kill what a failed test leaves behind: endless trainings."""
    yield
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


def finish(process, timeout=240):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def test_config_1_holds_its_documented_values():
    config = load_config(ROOT / "config_1.py")
    assert (config.batch_size, config.num_envs, config.n_agents) == (1024, 32, 10)
    assert (config.n_team_skills, config.n_agent_skills, config.skill_steps) == (3, 3, 10)
    assert (config.lambda_e, config.lambda_team, config.lambda_agent) == (1.0, 0.1, 0.5)
    assert (config.entropy_high, config.entropy_low, config.lr, config.hidden_size) == (0.001, 0.01, 1e-4, 64)
    assert (config.total_steps, config.eval_interval, config.checkpoint_interval) == (4_000_000, 160_000, 320_000)


def test_the_edits_of_the_troubleshooting_guide_take_effect(tmp_path):
    text = (ROOT / "config_1.py").read_text()
    for old, new in (("batch_size = 1024", "batch_size = 512"), ("num_envs = 32", "num_envs = 16")):
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "settings.py"
    path.write_text(text)
    config = load_config(path)
    assert (config.batch_size, config.num_envs, config.rollout_steps) == (512, 16, 32)


def test_the_entry_point_reads_its_settings_file(tmp_path):
    text = (ROOT / "config_1.py").read_text().replace("batch_size = 1024", "batch_size = 1000")
    (tmp_path / "broken.py").write_text(text)
    status, _, err = finish(start(tmp_path, "--config", "broken.py"))
    assert status == 2
    assert "batch_size=1000 is not a multiple of num_envs=32" in err
    assert "Traceback" not in err


@pytest.fixture
def endless(tmp_path):
    """Write settings of a run that does not end by itself into ``tmp_path``, and return the options that name them."""
    settings = [word for word in SMALL if not word.startswith(("total_steps", "eval_interval", "checkpoint_interval"))]
    settings += [f"{name}=100000000" for name in ("total_steps", "eval_interval", "checkpoint_interval")]
    (tmp_path / "settings.yaml").write_text("\n".join(word.replace("=", ": ") for word in settings))
    return "--config", "settings.yaml"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, process, seconds=200):
    """Wait while the process runs, at most so long."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the process has ended"
        assert time.monotonic() < deadline
        time.sleep(0.1)


def has_updated(folder):
    """Whether an update is in the metrics; what a batch collects is there before."""
    metrics = folder / "logs" / "metrics.jsonl"
    return metrics.exists() and "Sync/PolicyVersion" in metrics.read_text()


def checkpoint_of_the_last_step(folder):
    last = read_jsonl(folder / "logs" / "metrics.jsonl")[-1]["step"]
    return folder / "models" / f"hmasd_sync_enhanced_{last}.pth"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_tensorboard_stops_with_training_however_it_ends(tmp_path, endless, number):
    port, folder = free_port(), tmp_path / "seed [1], k*"
    words = (*endless, "--folder", folder.name, "--port", str(port))
    process = start(tmp_path, *words, program="start_sync_training.sh")
    wait_until(lambda: has_updated(folder) and (folder / "logs" / "tensorboard.log").exists(), process, seconds=60)
    process.send_signal(number)
    status, out, _ = finish(process)
    assert f"TensorBoard: http://localhost:{port}" in out
    assert "策略版本更新到: 1" in out
    if number == signal.SIGTERM:
        assert status == 128 + number
        assert checkpoint_of_the_last_step(folder).exists(), "saved before leaving"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))  # TensorBoard has let go of it


def test_a_signal_to_the_whole_group_is_one_signal(tmp_path, endless):
    """As ``timeout`` and service managers send it; a second signal would end training without a checkpoint."""
    words = (*endless, "--no-tensorboard")
    process = start(tmp_path, *words, program="start_sync_training.sh", start_new_session=True)
    wait_until(lambda: has_updated(tmp_path), process)
    os.killpg(process.pid, signal.SIGTERM)
    status, _, err = finish(process)
    assert status == 128 + signal.SIGTERM
    assert err.count("saving, then leaving") == 1
    assert checkpoint_of_the_last_step(tmp_path).exists()


def test_a_closed_terminal_saves_and_ends_training_where_no_shell_passes_the_signal_on(tmp_path, endless):
    """``ssh -t HOST ./start_sync_training.sh``: of the whole group only the script itself gets SIGHUP."""
    terminal, other_side = os.openpty()
    process = subprocess.Popen(
        [str(ROOT / "start_sync_training.sh"), *endless, "--port", str(free_port())],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHON": sys.executable},
        stdin=other_side,
        stdout=other_side,
        stderr=other_side,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(other_side)
    os.set_blocking(terminal, False)
    board = tmp_path / "logs" / "tensorboard.log"
    try:
        wait_until(lambda: _is_read_empty(terminal) and has_updated(tmp_path) and board.exists(), process)
        os.close(terminal)
        assert process.wait(60) == 128 + signal.SIGHUP
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert checkpoint_of_the_last_step(tmp_path).exists()


def _take_terminal():
    """Make standard input the terminal of this session, whose SIGHUP counts, also where the tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _is_read_empty(terminal):
    """Read what a program has printed, so that it does not wait for a full terminal."""
    with contextlib.suppress(BlockingIOError):
        while os.read(terminal, 65536):
            pass
    return True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model-pth", "models/a.pth"], "--model-pth"),
        (["--model-path", "models/a.pth"], "there is no checkpoint 'models/a.pth'"),
        (["--config", "a.yaml"], "there is no configuration file 'a.yaml'"),
        (["--set", "task=nope"], "there is no task 'nope'"),
    ],
)
def test_a_refused_command_starts_no_tensorboard(tmp_path, words, message):
    status, out, err = finish(start(tmp_path, *words, program="start_sync_training.sh"))
    assert status == 2
    assert message in err + out
    assert "TensorBoard: http" not in out
    assert not (tmp_path / "tf-logs").exists()
    assert not (tmp_path / "logs" / "tensorboard.log").exists()


def test_ctrl_c_ends_the_script_wherever_it_is(tmp_path):
    """The shell starts training with Ctrl-C ignored; evaluation has no handler of its own."""
    train(TrainCommand(set=SMALL, folder=tmp_path, log_level="ERROR"))
    words = ["--eval-only", "--model-path", "models/hmasd_sync_enhanced_final.pth"]
    words += ["--set", "eval_episodes=200000", "max_episode_steps=9"]
    process = start(tmp_path, *words, program="start_sync_training.sh", start_new_session=True)
    time.sleep(1.0)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:  # a terminal sends Ctrl-C to the whole group
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)
    status, _, err = finish(process)
    assert status == 130
    assert "interrupted; run the same command again" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("port", ["0", "70000", "-5", "abc"])
def test_the_script_refuses_what_is_no_port(tmp_path, port):
    status, out, err = finish(start(tmp_path, "--port", port, program="start_sync_training.sh"))
    assert (status, out) == (2, "")
    assert f"--port {port}: a port is a number from 1 to 65535" in err


def test_the_script_refuses_a_port_that_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, _, err = finish(start(tmp_path, "--port", str(port), program="start_sync_training.sh"))
    assert status == 2
    assert f"start_sync_training.sh: no free port from {port} to {port}" in err
    assert list(tmp_path.iterdir()) == []


def test_evaltools_and_envs_are_those_of_the_package():
    sys.path.insert(0, str(ROOT))
    try:
        from evaltools import eval_utils

        from envs.pettingzoo import uav_coverage
    finally:
        sys.path.remove(str(ROOT))
    from hmasd.envs import pettingzoo
    from hmasd.training import evaluation

    assert eval_utils.evaluate is evaluation.evaluate
    assert uav_coverage is pettingzoo.uav_coverage
