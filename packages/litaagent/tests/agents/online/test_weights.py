import json

import numpy as np
import pytest

from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.weights import save


def test_weights_are_written_and_read_without_loss(tmp_path):
    rng = np.random.default_rng(0)
    zeros = ActingNet.zeros("l2")
    net = ActingNet((rng.normal(size=zeros.weights[0].shape).astype(np.float32),), zeros.biases, zeros.log_std)
    save(PolicySet({"l2": net}, 4), tmp_path / "w.npz", seed=1)
    loaded = PolicySet.load(tmp_path / "w.npz")
    assert loaded.version == 4
    assert not loaded.rounds
    np.testing.assert_array_equal(loaded.nets["l2"].weights[0], net.weights[0])
    np.savez(tmp_path / "other.npz", meta=np.array(json.dumps({"kind": "l2"})))
    with pytest.raises(ValueError, match="lita train-online"):
        PolicySet.load(tmp_path / "other.npz")


@pytest.mark.parametrize(("digest", "message"), [("features_digest", "features abc"), ("l1_digest", "L1 abc")])
def test_weights_of_other_features_or_another_l1_are_refused(tmp_path, digest, message):
    save(PolicySet({"l2": ActingNet.zeros("l2")}), tmp_path / "w.npz", **{digest: "abc"})
    with pytest.raises(ValueError, match=message):
        PolicySet.load(tmp_path / "w.npz")


def test_weights_are_written_atomically(tmp_path, monkeypatch):
    save(PolicySet({"l2": ActingNet.zeros("l2")}, 1), tmp_path / "w.npz")

    def half(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(KeyboardInterrupt):
        save(PolicySet({"l2": ActingNet.zeros("l2")}, 2), tmp_path / "w.npz")
    assert PolicySet.load(tmp_path / "w.npz").version == 1
    assert [path.name for path in tmp_path.iterdir()] == ["w.npz"]
