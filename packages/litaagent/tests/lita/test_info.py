"""``lita info`` and ``lita checkpoint``."""

import json
from importlib.metadata import metadata
from pathlib import Path

import pytest
import torch

from apexrl.runs.checkpoints.checkpoint import CheckpointStore, Schema
from apexrl.runs.checkpoints.tensors import save_tensors
from lita import info
from lita.main import main


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path / "run", Schema(name="test", version=1))
    for step in (1, 2):
        store.save(step, {"weights": torch.arange(4.0)}, metrics={"loss": 1.0 / step})
    return store


def test_sound_folder_exits_0_and_shows_steps(store: CheckpointStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoint", str(store.folder)]) == 0
    text = capsys.readouterr().out
    assert text.count("sound") == 2
    assert "loss=0.5" in text


def test_damaged_file_is_named(store: CheckpointStore, capsys: pytest.CaptureFixture[str]) -> None:
    file = store.path(2)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert main(["checkpoint", str(file)]) == 1
    text = capsys.readouterr().out
    assert "damaged" in text
    assert file.name in text


def test_weights_of_a_training_run_are_checked_too(
    store: CheckpointStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "training"
    run.mkdir()
    store.folder.rename(run / "checkpoints")
    save_tensors(run / "l2_bc.pt", {"meta": {"kind": "l2"}, "model": {"bias": torch.zeros(2)}})
    assert main(["checkpoint", str(run)]) == 0
    text = capsys.readouterr().out
    assert "weights of l2" in text
    assert text.count("sound") == 3
    (run / "l2_bc.pt").write_bytes((run / "l2_bc.pt").read_bytes()[:-100])
    assert main(["checkpoint", str(run)]) == 1
    assert "l2_bc.pt" in capsys.readouterr().out


def test_missing_path_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoint", str(tmp_path / "none.pt")]) == 2
    assert "none.pt" in capsys.readouterr().err


def test_info_lists_the_three_distributions_and_what_every_extra_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"litaagent", "apexrl", "hmasd"} <= facts["versions"].keys()
    install = " ".join(how for _, how in info._FEATURES.values())
    for name in ("litaagent", "apexrl"):
        for extra in metadata(name).get_all("Provides-Extra"):
            assert f"[{extra}]" in install or extra == "ray"
    assert set(facts["features"].values()) == {"yes"}


def test_info_says_what_is_missing_and_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(info.importlib.util, "find_spec", lambda module: None if module == "scml_agents" else module)
    assert main(["info", "--json"]) == 0
    features = json.loads(capsys.readouterr().out)["features"]
    missing = "no: scml_agents missing; pip install --no-deps scml-agents"
    assert features["the league's agents as opponents"] == missing
    assert features["clusters (--executor ray)"] == "yes"


def test_the_table_shows_the_names_of_extras(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(info.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["info"]) == 0
    printed = capsys.readouterr().out
    assert "pip install 'litaagent[dashboard]'" in printed
    assert "pip install 'apexrl[onnx]'" in printed
