"""Each wheel builds, installs alone in a clean environment, imports, and does a small thing."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"apexrl": ["apexrl"], "hmasd": ["hmasd"], "litaagent": ["litaagent_std", "lita"]}
NEEDS = {"apexrl": ["apexrl"], "hmasd": ["apexrl", "hmasd"], "litaagent": ["apexrl", "litaagent"]}
LEAGUE = {"scml", "negmas", "pyarrow", "flask", "duckdb", "dash"}

SMALL_THINGS = {
    "apexrl": """
from functools import partial
import gymnasium
from apexrl import MAPPO, PPO, GymVecEnv, OnPolicyRunner, PPOConfig, check_env
env = GymVecEnv([partial(gymnasium.make, "CartPole-v1")] * 2)
check_env(env)
runner = OnPolicyRunner(env=env, cfg=PPOConfig(num_steps=16, minibatch_size=32), log_dir="run")
runner.learn(total_timesteps=64)
print(runner.eval(2)["eval/mean_reward"])
""",
    "hmasd": """
from hmasd import HMASDConfig, make_env
print(HMASDConfig(), make_env(HMASDConfig(task="alice_and_bob"), 2, seed=0))
""",
    "litaagent": """
from litaagent_std import LitaAgentHRL, official_setup, run_world
world = run_world(official_setup(0, [LitaAgentHRL], n_days=5, n_levels=2))
print(world.scores)
""",
}


def run(*words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheels")
    for name in PACKAGES:
        folder = ROOT / "packages" / name
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", target, folder, folder=target)
    return {path.name.partition("-")[0]: path for path in target.glob("*.whl")}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_wheel_holds_its_packages_with_types_and_licence(wheels, name):
    names = set(zipfile.ZipFile(wheels[name]).namelist())
    for package in PACKAGES[name]:
        assert f"{package}/__init__.py" in names
    assert f"{PACKAGES[name][0]}/py.typed" in names
    assert [file for file in names if file.endswith("licenses/LICENSE")]
    tops = {file.partition("/")[0] for file in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES[name])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PACKAGES)
def test_the_wheel_installs_alone_and_does_a_small_thing(wheels, name, tmp_path):
    python = tmp_path / "venv" / "bin" / "python"
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    needed = [wheels[need] for need in NEEDS[name]]
    run(python, *install, "-c", ROOT / "constraints.txt", *needed, folder=tmp_path)
    (tmp_path / "small_thing.py").write_text(SMALL_THINGS[name])
    assert run(python, "small_thing.py", folder=tmp_path)
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json", folder=tmp_path))
    installed = {package["name"] for package in listed}
    if name != "litaagent":
        assert not LEAGUE & installed
    else:
        assert "usage: lita" in run(python.parent / "lita", "--help", folder=tmp_path)
        assert '"litaagent"' in run(python.parent / "lita", "info", "--json", folder=tmp_path)
