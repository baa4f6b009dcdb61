"""A submission is complete, always the same, and plays where this project does not exist."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents import export_check
from litaagent_std.agents.export import Submission, SubmissionError, _check_imports, contents, verify, write
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.training.export import export_layer
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

SETTINGS = {"l2": "learned", "l3": "model", "l4": "learned", "parameters": {"hold": 0.25}}


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder of untrained weights of L2 and L4."""
    folder = tmp_path_factory.mktemp("weights")
    made_with = {"horizon": 10, "features_digest": features_digest(), "l1_digest": l1_digest()}
    export_layer(HorizonManagerPPO(10, dim=8), folder / "l2.npz", made_with)
    export_layer(ThreadCoordinator(), folder / "l4.npz", made_with)
    return folder


@pytest.fixture(scope="module")
def submission(weights):
    return Submission("MyLitaAgent", SETTINGS, weights)


@pytest.fixture(scope="module")
def archive(submission, tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "submission.zip"
    write(submission, path)
    return path


def test_a_zip_holds_package_policy_settings_and_requirements(archive):
    with zipfile.ZipFile(archive) as opened:
        names = opened.namelist()
        assert {"README.md", "requirements.txt", "my_lita_agent/__init__.py", "my_lita_agent/agent.py"} <= {*names}
        assert {
            f"my_lita_agent/{part}"
            for part in ("policy/brain/one.py", "policy/l1/guard.py", "weights/l2.npz", "weights/l4.npz")
        } <= {*names}
        assert l1_digest() in opened.read("my_lita_agent/policy/digest.py").decode()
        assert json.loads(opened.read("my_lita_agent/settings.json")) == SETTINGS
        assert b"scml==" in opened.read("requirements.txt")
        assert b"AFFERO GENERAL PUBLIC LICENSE" in opened.read("LICENSE")
        assert b"see `LICENSE`" in opened.read("README.md")
        code = b"".join(opened.read(name) for name in names if name.endswith(".py"))
    assert b"from litaagent_std" not in code
    assert b"import litaagent_std" not in code


def test_the_same_submission_gives_the_same_bytes(submission, archive, tmp_path):
    write(submission, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_it_plays_where_this_project_cannot_be_imported(submission, archive):
    played = verify(archive, submission.class_path, n_days=5)
    assert played["days"] == 5
    assert played["agents"] == 2
    assert played["contracts"] > 0


def test_the_check_hides_this_project():
    blocked = export_check._Blocked()
    with pytest.raises(ModuleNotFoundError, match=r"litaagent_std\.policy is not part of the submission"):
        blocked.find_spec("litaagent_std.policy")
    assert blocked.find_spec("numpy") is None


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import litaagent_std\nfrom scml.std.agents import SyncRandomStdAgent as Broken", "litaagent_std is not part"),
        (
            "from scml.std.agents import SyncRandomStdAgent\n"
            "class Broken(SyncRandomStdAgent):\n    def before_step(self): raise KeyError('oops')",
            "oops",
        ),
    ],
)
def test_a_submission_that_does_not_play_is_refused(body, told, tmp_path):
    path = tmp_path / "broken.zip"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("broken/__init__.py", body)
    with pytest.raises(SubmissionError, match=told):
        verify(path, "broken.Broken", n_days=5)


def test_a_class_of_the_agents_own_name_is_possible():
    plain = Submission()
    assert plain.class_path == "lita_agent_hrl.LitaAgentHRL"
    assert "import LitaAgentHRL as _Agent" in contents(plain)["lita_agent_hrl/__init__.py"].decode()
    assert Submission("agent").package == "agent_agent"
    assert Submission("Json").package == "json_agent"


@pytest.mark.parametrize("name", ["1st", "class", "My Agent", ""])
def test_a_name_must_be_one_of_python(name):
    with pytest.raises(ConfigurationError, match="cannot name an agent"):
        Submission(name)


def test_settings_that_make_no_agent_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="l3 shall be learned, but there are no weights"):
        contents(Submission(settings={"l3": "learned"}))
    with pytest.raises(ConfigurationError, match="unknown parameters"):
        contents(Submission(settings={"parameters": {"hodl": 1.0}}))
    with pytest.raises(ConfigurationError, match="there are no weights"):
        contents(Submission(settings={"l3": "learned"}, weights=tmp_path))


def test_an_import_that_the_league_does_not_have_is_refused():
    with pytest.raises(SubmissionError, match=r"a/b\.py imports apexrl\.runs, torch"):
        _check_imports({"a/b.py": b"import os, torch\nfrom apexrl.runs import atomic\nfrom . import c"})


def test_a_run_of_online_training_plays_in_a_submission_as_it_does_here(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    nets = {}
    for layer, made in untrained(("l2", "l4"), 0, {"l2": 8, "l4": 8}).nets.items():
        arrays = {
            name: (array + rng.normal(0, 0.2, array.shape)).astype("float32") for name, array in made.arrays.items()
        }
        nets[layer] = replace(made, arrays=arrays)
    Hierarchy(nets, 1, learning=("l2",)).save(tmp_path / "run/weights/v00001")
    submission = Submission("LitaTrained", weights=tmp_path / "run")
    assert b"Learned layers: l2, l4." in contents(submission)["README.md"]
    write(submission, tmp_path / "trained.zip")
    assert verify(tmp_path / "trained.zip", submission.class_path, n_days=5)["contracts"] > 0
    with zipfile.ZipFile(tmp_path / "trained.zip") as opened:
        opened.extractall(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    setup = replace(official_setup(3, (), n_days=8, n_levels=3), neutral_names=True)
    seat = next(number for number, factory in enumerate(setup.factories) if factory.level == 1)
    here = "litaagent_std.agents.hrl.LitaAgentHRL"
    agents = [AgentSpec(submission.class_path), AgentSpec(here, {"weights": str(tmp_path / "run")}), AgentSpec(here)]
    submitted, ours, heuristic = (run_world(setup.with_agents({seat: one})).scores for one in agents)
    assert submitted == ours != heuristic


def test_types_of_partners_play_in_a_submission_with_the_weights_of_the_package(tmp_path):
    submission = Submission("Typed", {"l3": "types", "parameters": {"urgency_low": 0.6, "urgency_high": 1.0}})
    assert "typed/policy/partners/partner_types.npz" in contents(submission)
    assert b"names the types of partners" in contents(submission)["README.md"]
    write(submission, tmp_path / "typed.zip")
    assert verify(tmp_path / "typed.zip", submission.class_path, n_days=4)["contracts"] > 0
