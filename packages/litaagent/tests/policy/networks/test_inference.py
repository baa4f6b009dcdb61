"""Networks in numpy beside torch, and weights that do not fit."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.export import TOLERANCE, export_layer, parity
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest
from litaagent_std.policy.learned import load_layers
from litaagent_std.policy.networks.weights import WeightsError

META = {"horizon": 10, "features_digest": features_digest(), "l1_digest": l1_digest()}


def shaken(model):
    """Gives all parameters sizes as training does, biases and heads included."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model


def networks():
    torch.manual_seed(1)
    yield HorizonManagerPPO(40, 10)
    yield HorizonManagerPPO(10)
    yield TemporalDecisionTransformer(40, 10, ensemble=3)
    yield TemporalDecisionTransformer(10, mode="direct")
    yield AcceptanceModel(40, 10)
    yield ThreadCoordinator()


@pytest.mark.parametrize("model", [shaken(model) for model in networks()], ids=lambda model: model.kind)
def test_numpy_agrees_with_torch(model, tmp_path):
    export_layer(model, tmp_path / "w.npz", META)
    assert max(parity(model, tmp_path / "w.npz", seed=seed, count=200) for seed in range(3)) <= TOLERANCE


def rewritten(path, **changes):
    """Changes what a weights file says of itself."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    meta = json.loads(str(arrays.pop("meta"))) | changes
    np.savez(path, meta=np.array(json.dumps(meta)), **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features_digest": "0" * 64}, "were made with features 000000000000"),
        ({"l1_digest": "1" * 64}, "were made with another L1 111111111111"),
        ({"format_version": 99}, "version 99"),
    ],
)
def test_weights_made_with_something_else_are_refused(changes, message, tmp_path):
    export_layer(ThreadCoordinator(), tmp_path / "w.npz", META)
    rewritten(tmp_path / "w.npz", **changes)
    with pytest.raises(WeightsError, match=message):
        load_layers(tmp_path / "w.npz")


def test_missing_damaged_and_lonely_weights_say_what_to_do(tmp_path):
    with pytest.raises(WeightsError, match="no weights"):
        load_layers(tmp_path / "none.npz")
    with pytest.raises(WeightsError, match=r"no \.npz"):
        load_layers(tmp_path)
    (tmp_path / "w.npz").write_bytes(b"PK\x03\x04cut")
    with pytest.raises(WeightsError, match="no weights file"):
        load_layers(tmp_path)
    with pytest.raises(WeightsError, match="name the folder of the run"):
        load_layers(tmp_path / "l2_bc.pt")
    export_layer(TemporalDecisionTransformer(10, dim=8, layers=1), tmp_path / "w.npz", META)
    with pytest.raises(WeightsError, match="goals of an L2"):
        load_layers(tmp_path)
    export_layer(HorizonManagerPPO(10, dim=8), tmp_path / "l2.npz", META)
    layers = load_layers(tmp_path)
    assert layers.goal is not None
    assert layers.decision is not None
    assert layers.coordination is None
