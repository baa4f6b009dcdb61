"""Statistics are exact, and an export holds every array."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from litaagent_std.hrl_xf.data_pipeline.export import MEANING, export_parquet
from litaagent_std.hrl_xf.data_pipeline.stats import QUANTILES, dataset_statistics


@pytest.fixture(scope="module")
def statistics(dataset):
    return dataset_statistics(dataset)


def test_prices_of_actions_are_distributed_as_numpy_says(dataset, statistics):
    made = (dataset.micro["op"] == 1) & (dataset.micro["side"] == 1)
    prices = dataset.micro["offer"][made, 2]
    [prices_sold] = [d for d in statistics.distributions if (d.what, d.role) == ("price", "sell")]
    assert prices_sold.n == len(prices)
    assert prices_sold.mean == pytest.approx(prices.mean())
    assert prices_sold.std == pytest.approx(prices.std())
    assert (prices_sold.low, prices_sold.high) == (prices.min(), prices.max())
    assert prices_sold.quantiles == tuple(np.quantile(prices, QUANTILES, method="inverted_cdf"))
    assert prices_sold.level == "first"


def test_target_prices_count_where_there_is_a_quantity(dataset, statistics):
    overall, *targets = [d for d in statistics.distributions if d.what == "target price"]
    assert (overall.role, overall.level) == ("all", "all")
    assert sum(d.n for d in targets) == overall.n == dataset.macro["goal_p_mask"].sum()
    assert overall.mean == pytest.approx(sum(d.n * d.mean for d in targets) / overall.n)
    assert overall.low == min(d.low for d in targets)
    assert overall.high == max(d.high for d in targets)
    assert {(d.role, d.level) for d in targets} == {("buy", "last"), ("sell", "first")}


def test_every_action_is_counted(dataset, statistics):
    counts = np.array([[one.accept, one.reject, one.end] for one in statistics.operations]).sum(axis=0)
    assert counts.tolist() == np.bincount(dataset.micro["op"], minlength=3).tolist()
    assert statistics.counts["actions"] == len(dataset.micro)
    assert all(0 < one.taken < 1 for one in statistics.operations)


def test_an_export_holds_every_array_and_explains_it(dataset, tmp_path):
    export_parquet(dataset, tmp_path)
    card = (tmp_path / "README.md").read_text()
    for name, part in (("macro", dataset.macro), ("micro", dataset.micro)):
        table = pq.read_table(tmp_path / f"{name}.parquet")
        assert table.num_rows == len(part)
        assert set(table.column_names) == {"split", *part}
        for key in part:
            flat = table[key].combine_chunks()
            for _ in part[key].shape[1:]:
                flat = flat.flatten()
            assert np.array_equal(flat.to_numpy(zero_copy_only=False), np.asarray(part[key]).reshape(-1))
            assert f"`{key}`" in card
            assert key in MEANING
        rows = [i for i, split in enumerate(table["split"].to_pylist()) if split == "val"]
        assert rows == part.rows("val").tolist()
    assert dataset.digest in card
