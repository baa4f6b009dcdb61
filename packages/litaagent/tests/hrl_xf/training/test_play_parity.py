"""What a learned L3 reads in play is what it was trained on, bit by bit: thread, day, and the heuristic's goals."""

from __future__ import annotations

import numpy as np

from litaagent_std.hrl_xf.data_pipeline import DatasetOptions, build_dataset
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.training.data import MicroRows
from litaagent_std.hrl_xf.training.export import export_layer
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import features_digest
from litaagent_std.policy.networks.inference import DecisionNetwork

NAMES = ("history", "history_mask", "ranges", "x_thread", "x_partner")
DAY = ("x_static", "x_temporal", "lines", "price", "base")
PATH = "litaagent_std.agents.hrl.LitaAgentHRL"


class Spy(DecisionNetwork):
    """Record the inputs of a network that decides as the heuristic."""

    def __init__(self, weights, seen):
        super().__init__(weights)
        self.seen = seen

    def outputs(self, batch):
        for row in range(len(batch.history)):
            arrays = [getattr(batch, name)[row] for name in NAMES] + [getattr(batch.day, name)[row] for name in DAY]
            self.seen[b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)] = batch.baseline[row]
        return super().outputs(batch)


def test_every_recorded_decision_was_seen_the_same_way_in_play(collect, tmp_path, monkeypatch):
    seen = {}
    meta = {"horizon": 10, "features_digest": features_digest(), "l1_digest": l1_digest()}
    for model in (HorizonManagerPPO(10, dim=8), TemporalDecisionTransformer(10, dim=8, layers=1)):
        export_layer(model, tmp_path / "weights" / f"{model.kind}.npz", meta)
    monkeypatch.setattr("litaagent_std.policy.learned.decision_network", lambda weights: Spy(weights, seen))
    ours = f'{PATH}:{{"weights": "{tmp_path / "weights"}"}}'
    collect(tmp_path / "t", competitors=(ours, "GreedyStd"), levels=3, csv=False)
    data = build_dataset(tmp_path / "t", tmp_path / "d", DatasetOptions(agent_name="LitaAgentHRL"), num_workers=1)
    micro, macro = data.micro, data.macro
    rows = np.arange(len(micro))
    base = MicroRows(data)[rows]["decision"].numpy()
    missing, same = 0, 0
    for row in rows:
        day = int(micro["day_row"][row])
        arrays = [micro[name][row] for name in NAMES] + [macro[name][day] for name in DAY]
        live = seen.get(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))
        missing += live is None
        same += live is not None and np.array_equal(live, base[row])
    assert len(rows) > 100
    assert missing == 0
    # The record does not always show in which order offers came; the base of residuals depends on it.
    assert same >= 0.9 * len(rows)
    # The agent played as the heuristic, and the fold of its record gives its own decisions.
    assert (micro["op"][rows] == micro["base_op"][rows]).mean() > 0.97
