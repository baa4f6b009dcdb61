"""Each package builds as sdist and wheel, installs alone in a clean environment, imports, and does a small thing.

The wheels are built from the sdists, so an sdist that lacks a file fails too.
"""

import json
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"apexrl": ["apexrl"], "hmasd": ["hmasd"], "litaagent": ["litaagent_std", "lita"]}
NEEDS = {"apexrl": ["apexrl"], "hmasd": ["apexrl", "hmasd"], "litaagent": ["apexrl", "litaagent"]}
LEAGUE = {"scml", "negmas", "pyarrow", "flask", "duckdb", "dash"}

SMALL = shlex.split("--configs 1 --runs 1 --steps 5 --levels 2 --no-csv --executor inline --quiet --output-dir")
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
from hmasd import evaluate, preset, train
config = preset("paper", num_envs=4, batch_size=400, total_steps=400, ppo_epochs=1, eval_episodes=4)
trainer = train(config)
print(evaluate(trainer.agent, config, trainer.env_steps).metrics(config.task))
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


def lita(python, *words, folder):
    done = subprocess.run([python.parent / "lita", *words], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Build the sdist of each package, and the wheel from it."""
    target = tmp_path_factory.mktemp("dist")
    for name in PACKAGES:
        folder = ROOT / "packages" / name
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", target, folder, folder=target)
    return target


@pytest.fixture(scope="module")
def wheels(dist):
    return {path.name.partition("-")[0]: path for path in dist.glob("*.whl")}


def test_the_index_accepts_the_metadata_and_the_readme_of_every_file(dist):
    files = sorted(dist.iterdir())
    assert len(files) == 2 * len(PACKAGES)
    checked = run(sys.executable, "-m", "twine", "check", "--strict", *files, folder=dist)
    assert checked.count("PASSED") == len(files)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_sdist_has_sources_tests_and_licence_and_nothing_made(dist, name):
    version = tomllib.loads((ROOT / f"packages/{name}/pyproject.toml").read_text())["project"]["version"]
    with tarfile.open(dist / f"{name}-{version}.tar.gz") as archive:
        files = [file.partition("/")[2] for file in archive.getnames()]
    assert {"pyproject.toml", "README.md", "LICENSE", "PKG-INFO"} <= set(files)
    assert {f"src/{package}/__init__.py" for package in PACKAGES[name]} <= set(files)
    assert [file for file in files if file.startswith("tests/")]
    assert [file for file in files if re.search(r"__pycache__|\.pyc$|\.venv|_build/", file)] == []


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
        return
    assert "usage: lita" in run(python.parent / "lita", "--help", folder=tmp_path)
    assert '"litaagent"' in run(python.parent / "lita", "info", "--json", folder=tmp_path)
    run(python.parent / "lita", "tournament", "--competitors", "lita", "RandomStd", *SMALL, "out", folder=tmp_path)
    # Without the league's agents, one line says how to get them.
    status, said = lita(python, "tournament", "--competitors", "PenguinAgent", *SMALL, "league", folder=tmp_path)
    assert status == 2
    assert "pip install --no-deps scml-agents" in said
    assert "Traceback" not in said
    run(python, *install, "-c", ROOT / "constraints.txt", "--no-deps", "scml-agents", folder=tmp_path)
    status, said = lita(python, "tournament", "--competitors", "PenguinAgent", *SMALL, "league", folder=tmp_path)
    assert status == 0, said
