"""A dataset made by rule, in the form that the data pipeline writes: goals and decisions follow from the features."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from litaagent_std.hrl_xf.data_pipeline.errors import EmptySplitError
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.digest import l1_digest
from litaagent_std.policy.features import DAY_FEATURES, THREAD_FEATURES, features_digest

HORIZON = 4


class MadeTable(dict):
    """Arrays by name with rows by split, as `data_pipeline.dataset.Part` has them."""

    splits = (("train", 0, 6), ("val", 6, 8), ("test", 8, 9))

    def rows(self, split):
        low, high = next((low, high) for name, low, high in self.splits if name == split)
        rows = np.flatnonzero((self["config"] >= low) & (self["config"] < high))
        if not len(rows):
            raise EmptySplitError(f"split {split} is empty")
        return rows


def make_macro(n, rng):
    names = DAY_FEATURES["x_static"]
    static = rng.normal(size=(n, len(names))).astype(np.float32)
    for side in ("buy", "sell"):
        static[:, names.index(f"{side}_price_min")], static[:, names.index(f"{side}_price_max")] = -1.0, 1.0
    left = rng.integers(1, HORIZON + 2, n)
    mask = np.arange(HORIZON + 1) < left[:, None]
    temporal = (rng.normal(size=(n, HORIZON + 1, len(DAY_FEATURES["x_temporal"]))) * mask[..., None]).astype(np.float32)
    role = np.array([[0, 1], [1, 1], [1, 0]], np.float32)[rng.integers(0, 3, n)]
    buckets = n_buckets(HORIZON)
    shape = 1.0 / (1.0 + np.exp(-static[:, :2, None]))  # the first two features decide the goals
    goal_q = np.rint(10.0 * shape * role[:, :, None] * np.ones(buckets)).astype(np.float32)
    price = np.tile(np.array([[10.0, 20.0]], np.float32), (n, 1))
    goal_p = (price[:, :, None] * (1.0 + 0.05 * np.tanh(static[:, 2:4, None])) * np.ones(buckets)).astype(np.float32)
    days = np.minimum(left[:, None], np.ones(buckets))
    goal_q[:, :, 1:] *= (left > 3)[:, None, None]
    ret = (0.5 * static[:, 5] + 0.1 * rng.normal(size=n)).astype(np.float32)
    return MadeTable(
        x_static=static,
        x_temporal=temporal,
        x_role=role,
        mask=mask,
        goal_q=goal_q * (days > 0)[:, None, :],
        goal_p=goal_p,
        goal_p_mask=goal_q > 0,
        lines=np.full(n, 10.0, np.float32),
        price=price,
        return_to_go=ret,
        return_norm=ret,
        base=rng.uniform(0, 10, (n, 7 * n_buckets(HORIZON) + 1)).astype(np.float32),
        config=(np.arange(n) * 9 // n).astype(np.int32),
        world=(np.arange(n) * 18 // n).astype(np.int32),
        factory=(np.arange(n) % 3).astype(np.int16),
        day=(np.arange(n) % 7).astype(np.int16),
    )


def make_micro(m, macro, rng):
    n = len(macro["config"])
    day_row = np.sort(rng.integers(0, n, m)).astype(np.int64)
    length = 6
    seen = rng.integers(0, length + 1, m)
    history_mask = np.arange(length) < seen[:, None]
    history = (
        rng.uniform(0, 1, (m, length, len(THREAD_FEATURES["history"]))).astype(np.float32) * history_mask[..., None]
    )
    history[:, :, 0] = (np.arange(length) % 2 == 0) * history_mask
    now, names = rng.normal(size=(m, len(THREAD_FEATURES["x_thread"]))).astype(np.float32), THREAD_FEATURES["x_thread"]
    answers = seen > 0
    now[:, names.index("answers")] = answers
    low, high = np.array([1, 0, 9]), np.array([10, HORIZON, 20])
    ranges = np.zeros((m, len(THREAD_FEATURES["ranges"])), np.float32)
    ranges[:, THREAD_FEATURES["ranges"].index("lead_max")] = 1.0
    received = np.stack([rng.integers(1, 10, m), rng.integers(0, HORIZON + 1, m), rng.integers(9, 21, m)], 1)
    signal = now[:, names.index("offer_price")]
    op = np.where(answers & (signal > 0.5), 0, np.where(signal < -1.5, 2, 1)).astype(np.int8)
    lead = (np.abs(now[:, names.index("offer_lead")]) * 2).astype(int).clip(0, HORIZON)
    quantity = np.rint(5 + 2 * np.tanh(now[:, names.index("offer_quantity")])).astype(int)
    offer = np.stack([quantity, lead, np.rint(14 + 4 * np.tanh(signal)).astype(int)], 1)
    taken = np.where(op == 1, (offer[:, 2] > 13).astype(int), -1)
    side = rng.integers(0, 2, m).astype(np.int8)
    return MadeTable(
        history=history,
        history_mask=history_mask,
        ranges=ranges,
        x_thread=now,
        x_partner=rng.normal(size=(m, len(THREAD_FEATURES["x_partner"]))).astype(np.float32),
        day_row=day_row,
        op=op,
        offer=np.where((op == 1)[:, None], offer, -1).astype(np.int32),
        received=np.where(answers[:, None], received, -1).astype(np.int32),
        base_op=rng.integers(0, 3, m).astype(np.int8),
        base_offer=np.tile(np.array([5, 0, 14], np.int32), (m, 1)),
        issue_low=np.tile(low, (m, 1)).astype(np.int32),
        issue_high=np.tile(high, (m, 1)).astype(np.int32),
        taken=taken.astype(np.int8),
        side=side,
        config=macro["config"][day_row],
        world=macro["world"][day_row],
        thread=(np.arange(m) // 4).astype(np.int32),
        round=rng.integers(0, 2, m).astype(np.int16),
        return_to_go=macro["return_to_go"][day_row],
        return_norm=macro["return_norm"][day_row],
    )


@pytest.fixture(scope="session")
def made_data():
    """Nine configurations: six train, two validate, one tests."""
    rng = np.random.default_rng(7)
    macro = make_macro(540, rng)
    micro = make_micro(1500, macro, rng)
    return SimpleNamespace(
        macro=macro,
        micro=micro,
        horizon=HORIZON,
        league_horizon=HORIZON,
        digest="made",
        features_digest=features_digest(),
        l1_digest=l1_digest(),
    )
