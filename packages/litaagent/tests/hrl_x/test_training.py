"""The documented way from tables to saved models runs, and the linear models learn what is linear."""

import numpy as np
import pytest

from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_x.inputs import macro_arrays, micro_arrays
from litaagent_std.hrl_x.linear import TrainConfig, fit_regression, fit_softmax, softmax
from litaagent_std.hrl_x.training import L2Linear, load_model, save_model, train_l2_bc, train_l3_bc
from litaagent_std.hrl_xf.data_pipeline import load_tournament_data
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError, DatasetError
from litaagent_std.hrl_xf.data_pipeline.samples import MacroSample, MicroSample
from litaagent_std.records.reader import open_records
from litaagent_std.tournament.export import export_logs

DOCUMENTED = """
from litaagent_std.hrl_x.data_pipeline import load_negotiation_csv, build_macro_dataset, build_micro_dataset
df = load_negotiation_csv("./tournament_history/hrl_data_XXXX_std")
macro_ds = build_macro_dataset(df)   # L2 标签：按日聚合成交量/价格
micro_ds = build_micro_dataset(df)   # L3 序列：按谈判聚合轮次

from litaagent_std.hrl_x.training import TrainConfig, train_l2_bc, train_l3_bc, save_model
cfg = TrainConfig(lr=1e-3, epochs=10, batch_size=32)
l2_model = train_l2_bc(macro_ds, cfg)
l3_model = train_l3_bc(micro_ds, cfg)
save_model(l2_model, "./out/l2_baseline.npz")
save_model(l3_model, "./out/l3_baseline.npz")
"""


@pytest.fixture(scope="module")
def tournament(collect, tmp_path_factory):
    return collect(tmp_path_factory.mktemp("linear") / "one", configs=2)


def test_the_documented_blocks_run(tournament, tmp_path, monkeypatch):
    export_logs(open_records(tournament), tmp_path / "history", worlds=[0])
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(DOCUMENTED.replace("./tournament_history/hrl_data_XXXX_std", "history"), names)
    l2, l3 = load_model("out/l2_baseline.npz"), load_model("out/l3_baseline.npz")
    arrays, actions = macro_arrays(names["macro_ds"]), micro_arrays(names["micro_ds"])
    assert np.array_equal(l2.predict(arrays.state, arrays.scale), names["l2_model"].predict(arrays.state, arrays.scale))
    after = l3.predict(actions.inputs, actions.baseline, actions.scale)
    before = names["l3_model"].predict(actions.inputs, actions.baseline, actions.scale)
    assert all(np.array_equal(a, b) for a, b in zip(after, before, strict=True))
    assert after[0].sum(axis=1) == pytest.approx(1.0)


def test_linear_models_beat_constants_on_what_they_saw(tournament):
    macro, micro = load_tournament_data(tournament, agent_name="Greedy")
    config = TrainConfig(lr=2e-2, epochs=40, batch_size=64)
    arrays = macro_arrays(macro.of("train"))
    wanted, got = (
        arrays.goal[:, 0::2],
        train_l2_bc(macro.of("train"), config).predict(arrays.state, arrays.scale)[:, 0::2],
    )
    assert ((got - wanted) ** 2).mean() < 0.7 * ((wanted - wanted.mean(axis=0)) ** 2).mean()
    actions = micro_arrays(micro.of("train"))
    model = train_l3_bc(micro.of("train"), TrainConfig(lr=2e-2, epochs=5))
    chance, counter = model.predict(actions.inputs, actions.baseline, actions.scale)
    ops = actions.action[:, 0].astype(int)
    share = np.bincount(ops, minlength=3) / len(ops)
    assert -np.log(chance[np.arange(len(ops)), ops]).mean() < -np.log(share[ops]).mean()
    made = ops == 1
    error = ((counter - actions.action[:, 1:])[made] ** 2).mean(axis=0)
    plain = ((actions.baseline - actions.action)[made][:, 1:] ** 2).mean(axis=0)
    assert (error < plain).all()


def test_rows_of_a_dataset_give_what_single_samples_give(tournament):
    macro, micro = load_tournament_data(tournament, agent_name="Greedy")
    for fast, slow in (
        (macro_arrays(macro), macro_arrays(list(macro))),
        (micro_arrays(micro), micro_arrays(list(micro))),
    ):
        for name in fast.__slots__:
            assert np.allclose(getattr(fast, name), getattr(slow, name)), name


def test_a_regression_finds_the_line():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2000, 3)) * [1, 10, 0.1] + [0, 5, 2]
    y = np.stack([x @ [1.0, -0.2, 3.0] + 4, x @ [0.0, 0.1, 0.0]], axis=1)
    known = np.ones(y.shape, bool)
    known[::2, 1] = False
    wrong = y.copy()
    wrong[::2, 1] = 1e6  # targets that are not known count nothing
    model = fit_regression(x, wrong, known, TrainConfig(lr=0.05, epochs=40, batch_size=100, weight_decay=0.0))
    assert model(x) == pytest.approx(y, abs=0.02)


def test_a_softmax_finds_the_classes():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(3000, 2))
    labels = (x[:, 0] > 0).astype(np.int64)
    model = fit_softmax(x, labels, 3, TrainConfig(lr=0.05, epochs=20, batch_size=100))
    assert (softmax(model(x)).argmax(axis=1) == labels).mean() > 0.98


def test_training_is_the_same_every_time(tournament):
    macro, _ = load_tournament_data(tournament, agent_name="Greedy")
    one, other = (train_l2_bc(macro, TrainConfig(epochs=2)).model.weights for _ in range(2))
    assert np.array_equal(one, other)
    assert not np.array_equal(one, train_l2_bc(macro, TrainConfig(epochs=2, seed=1)).model.weights)


def test_samples_that_cannot_be_learned_from_are_told():
    with pytest.raises(BadSampleError, match="there are no samples"):
        train_l2_bc([])
    bad = MacroSample(0, np.array([np.nan], np.float32), np.zeros((4, 4), np.float32))
    with pytest.raises(BadSampleError, match="state of sample 0 is not finite"):
        train_l2_bc([bad])
    history = np.zeros((1, 6), np.float32)
    accepts = MicroSample("a", history, np.array([0, -1, -1, -1], np.int32), np.array([1, 1, 0, 5], np.int32))
    with pytest.raises(BadSampleError, match="none of 1 actions is a counter-offer"):
        train_l3_bc([accepts])
    for wrong in ({"lr": 0.0}, {"epochs": 0}, {"batch_size": 0}):
        with pytest.raises(ConfigurationError, match="more than 0"):
            TrainConfig(**wrong)


def test_files_that_are_no_models_are_told(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"nothing")
    with pytest.raises(DatasetError, match=r"a\.npz.*cannot be used"):
        load_model(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", meta=np.array('{"format": "other"}'))
    with pytest.raises(DatasetError, match="sizes"):
        load_model(tmp_path / "b.npz")


def test_saving_keeps_everything(tmp_path):
    draw = np.random.default_rng(0)
    samples = [
        MacroSample(day, draw.normal(size=5).astype(np.float32), draw.random((4, 2)).astype(np.float32))
        for day in range(20)
    ]
    model = train_l2_bc(samples, TrainConfig(epochs=1))
    back = load_model(save_model(model, tmp_path / "deep" / "model.npz"))
    assert isinstance(back, L2Linear)
    assert back.n_buckets == 2
    for name in ("mean", "spread", "weights", "bias"):
        assert np.array_equal(getattr(back.model, name), getattr(model.model, name))
