from pathlib import Path

import numpy as np
import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.config import PoolConfig
from litaagent_std.hrl_xf.online.opponents import OpponentPool


def test_hard_opponents_are_drawn_more_often_and_the_pool_survives_a_restart(tmp_path):
    cfg = PoolConfig(competitors=("RandomStd", "GreedyStd"), held_out=("SyncRandomStd",), nobody=0.0, past_selves=1)
    pool = OpponentPool(cfg)
    for _ in range(30):
        pool.record_game("RandomStdAgent", won=True)
        pool.record_game("GreedyStdAgent", won=False)
    assert pool.chances()["GreedyStdAgent"] > 5 * pool.chances()["RandomStdAgent"]
    pool.add_self(tmp_path / "v1.npz")
    pool.add_self(tmp_path / "v2.npz")
    assert "self_v2" in pool.chances()
    assert "self_v1" not in pool.chances()
    again = OpponentPool(cfg)
    again.load_state_dict(pool.state_dict())
    draws = [[p.draw(np.random.default_rng(s)) for s in range(20)] for p in (pool, again)]
    assert draws[0] == draws[1]
    drawn = {spec.path for draw in draws[0] for spec in draw}
    assert not drawn & set(pool.held_out)
    with pytest.raises(ConfigurationError, match="held out"):
        OpponentPool(PoolConfig(competitors=("GreedyStd",), held_out=("GreedyStd",)))


def test_a_past_version_is_found_from_any_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pool = OpponentPool(PoolConfig(competitors=("GreedyStd",), held_out=(), nobody=0.0))
    pool.add_self(Path("run/weights/v00002"))
    assert pool.state_dict()["selves"] == ["run/weights/v00002"]  # the run may be moved
    specs = [spec for seed in range(20) for spec in pool.draw(np.random.default_rng(seed))]
    assert {spec.params["weights"] for spec in specs if spec.params} == {str(tmp_path / "run/weights/v00002")}
