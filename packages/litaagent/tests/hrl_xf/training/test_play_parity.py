"""What a learned L3 reads in play is what it was trained on, bit by bit: thread, baseline and day."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from litaagent_std.agents.hrl import LitaAgentHRL
from litaagent_std.hrl_xf.data_pipeline import DatasetOptions, build_dataset
from litaagent_std.hrl_xf.training.data import MicroRows
from litaagent_std.policy.l2.learned import day_inputs
from litaagent_std.policy.l3.learned import LearnedDecisions
from litaagent_std.policy.layers import KEEP, ActionBatch

NAMES = ("history", "history_mask", "ranges", "x_thread", "x_partner", "baseline")


class NoGoals:
    """Days without goals."""

    def day_start(self, obs):
        return np.zeros((1, 2, 4), np.float32), np.zeros((1, 2, 4), np.float32), day_inputs(obs)


class Spy(LearnedDecisions):
    """Record the inputs of the network, and leave the plan as it is."""

    seen: list = []  # noqa: RUF012 - shared on purpose: agents are made by the tournament

    def __init__(self):
        super().__init__(SimpleNamespace(decide=self._decided, residual=False), NoGoals())

    def decide_all(self, situation, alpha):
        super().decide_all(situation, alpha)
        return ActionBatch(np.full(len(situation.threads), KEEP), situation.plan.offer)

    def _decided(self, batch, low, high):
        for row in range(len(batch.history)):
            arrays = [getattr(batch, name)[row] for name in NAMES]
            arrays += [batch.day.x_static[row], batch.day.x_temporal[row], batch.day.lines[row], batch.day.price[row]]
            self.seen.append(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))
        return np.zeros(len(low), np.int64), low


def test_every_recorded_decision_was_seen_the_same_way_in_play(collect, tmp_path, monkeypatch):
    plain = LitaAgentHRL.__init__
    monkeypatch.setattr(
        LitaAgentHRL,
        "__init__",
        lambda self, *args, **options: plain(self, *args, l3="learned", decision_layer=Spy(), **options),
    )
    Spy.seen.clear()
    ours = "litaagent_std.agents.hrl.LitaAgentHRL"
    collect(tmp_path / "t", competitors=(ours, "GreedyStd"), levels=3, csv=False)
    data = build_dataset(tmp_path / "t", tmp_path / "d", DatasetOptions(agent_name="LitaAgentHRL"), num_workers=1)
    micro, macro = data.micro, data.macro
    live = set(Spy.seen)
    rows = np.arange(len(micro))
    base = MicroRows(data)[rows]["base"].numpy()
    missing = 0
    for row in rows:
        day = int(micro["day_row"][row])
        arrays = [base[row] if name == "baseline" else micro[name][row] for name in NAMES]
        arrays += [macro[name][day] for name in ("x_static", "x_temporal", "lines", "price")]
        missing += b"".join(np.ascontiguousarray(array).tobytes() for array in arrays) not in live
    assert len(rows) > 100
    assert missing == 0
