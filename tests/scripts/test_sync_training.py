"""Scripts and folders of the root: train_sync_enhanced.py, start_sync_training.sh, config_1.py, evaltools, envs."""

import os
import signal
import socket
import subprocess
import sys
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


def start(tmp_path, *words, program="train_sync_enhanced.py", start_new_session=False):
    """Start a script of the root in ``tmp_path``."""
    interpreter = [sys.executable] if program.endswith(".py") else []
    return subprocess.Popen(
        [*interpreter, str(ROOT / program), *words],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=start_new_session,
    )


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


def test_the_script_stops_training_and_tensorboard_on_sigterm(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = [word if not word.startswith("total_steps") else "total_steps=100000000" for word in SMALL]
    (tmp_path / "settings.yaml").write_text("\n".join(word.replace("=", ": ") for word in settings))
    process = start(
        tmp_path,
        "--config", "settings.yaml", "--port", str(port), "--log-level", "INFO",
        program="start_sync_training.sh",
    )  # fmt: skip
    metrics = tmp_path / "logs" / "metrics.jsonl"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (metrics.exists() and metrics.stat().st_size):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    status, out, _ = finish(process)
    assert status == 128 + signal.SIGTERM
    assert f"TensorBoard: http://localhost:{port}" in out
    assert "策略版本更新到: 1" in out
    last = read_jsonl(metrics)[-1]["step"]
    assert (tmp_path / "models" / f"hmasd_sync_enhanced_{last}.pth").exists(), "saved before leaving"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))  # TensorBoard has let go of it


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
    assert status != 0
    assert f"no free port from {port} to {port}" in err


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
