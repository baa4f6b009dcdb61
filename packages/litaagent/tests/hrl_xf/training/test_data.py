"""Batches of an epoch."""

import numpy as np

from litaagent_std.hrl_xf.training.data import batch_order


def test_the_order_of_an_epoch_is_a_permutation_by_seed_phase_and_epoch():
    rows = np.arange(100, 131)
    order = batch_order(rows, 8, 1, "l2_bc", 3)
    assert sorted(np.concatenate(order)) == rows.tolist()
    assert [len(batch) for batch in order] == [8, 8, 8, 7]
    for other in ((2, "l2_bc", 3), (1, "l3_bc", 3), (1, "l2_bc", 4)):
        assert np.concatenate(batch_order(rows, 8, *other)).tolist() != np.concatenate(order).tolist()
