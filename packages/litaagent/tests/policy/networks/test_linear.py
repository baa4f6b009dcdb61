"""The linear models of `hrl_x` in play: what they predict from a dataset is what the agent's layers see."""

import numpy as np
import pytest

from litaagent_std import AgentSpec, LitaAgentHRL, official_setup
from litaagent_std.hrl_x.inputs import macro_arrays, micro_arrays
from litaagent_std.hrl_x.training import TrainConfig, load_model, save_model, train_l2_bc, train_l3_bc
from litaagent_std.hrl_xf.data_pipeline import load_tournament_data
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.policy.networks.inference import DayInputs, ThreadInputs
from litaagent_std.policy.networks.inputs import GOAL_CAP, MASKED, PRICE_UNIT, baseline_inputs
from litaagent_std.policy.networks.linear import LinearDecisions, LinearGoals
from litaagent_std.policy.networks.weights import WeightsError, load_weights
from litaagent_std.world.events import WorldObserver
from litaagent_std.world.fast.engine import FastWorld


@pytest.fixture(scope="module")
def samples(collect, tmp_path_factory):
    return load_tournament_data(collect(tmp_path_factory.mktemp("records"), configs=2), agent_name="Greedy")


@pytest.fixture(scope="module")
def folder(samples, tmp_path_factory):
    out, config = tmp_path_factory.mktemp("out"), TrainConfig(lr=2e-2, epochs=5)
    save_model(train_l2_bc(samples[0], config), out / "l2_baseline.npz")
    save_model(train_l3_bc(samples[1], config), out / "l3_baseline.npz")
    return out


def days_of(data, rows):
    names = ("x_static", "x_temporal", "x_role", "mask", "lines", "price", "base")
    return DayInputs(*(data.macro[name][rows] for name in names))


def test_goals_are_those_that_the_model_predicts(samples, folder):
    macro, _ = samples
    day, arrays = days_of(macro.data, macro.rows), macro_arrays(macro)
    wanted = load_model(folder / "l2_baseline.npz").predict(arrays.state, arrays.scale)
    network = LinearGoals(load_weights(folder / "l2_baseline.npz"))
    residual = network.latents(day)
    quantity, _ = network.decode(residual, day)
    most = GOAL_CAP * network._days(day.mask)[:, None, :] * day.lines[:, None, None]
    trades = day.x_role[:, :, None] > 0
    assert np.where(trades, quantity, 0) == pytest.approx(np.where(trades, np.minimum(wanted[:, 0::2], most), 0), abs=1)
    low, high = network.bands(day)
    count = network.n_buckets
    base = day.base[:, 2 * count : 4 * count].reshape(-1, 2, count)
    price = base + residual[:, 2 * count : 4 * count].reshape(-1, 2, count) * (high - low)
    asked = trades & (wanted[:, 0::2] > 0)
    assert asked.any()
    assert price[asked] == pytest.approx(wanted[:, 1::2][asked], rel=1e-3, abs=1e-3)
    assert not residual[:, 4 * count :].any()


def test_decisions_are_those_that_the_model_predicts(samples, folder):
    _, micro = samples
    data, rows = micro.data, micro.rows
    threads = {name: data.micro[name][rows] for name in ("history", "history_mask", "ranges", "x_thread", "x_partner")}
    day = days_of(data, data.micro["day_row"][rows])
    arrays = micro_arrays(micro)
    chance, counter = load_model(folder / "l3_baseline.npz").predict(arrays.inputs, arrays.baseline, arrays.scale)
    ranges, usual = threads["ranges"], arrays.scale[:, 2]
    low, high = (np.zeros((len(rows), 3)) for _ in range(2))
    low[:, 2], high[:, 2] = (usual * (1.0 + PRICE_UNIT * ranges[:, column]) for column in (4, 5))
    base = baseline_inputs(
        arrays.baseline[:, 0], arrays.baseline[:, 1:], low, high, arrays.scale[:, 0], data.league_horizon
    )
    batch = ThreadInputs(
        day,
        *threads.values(),
        np.zeros((len(rows), 16), np.float32),
        base,
        np.zeros(len(rows), np.float32),
    )
    network = LinearDecisions(load_weights(folder / "l3_baseline.npz"))
    op, lead, quantity, position = network.outputs(batch)
    legal = (op > MASKED / 2).all(axis=1)
    assert legal.any()
    assert (op.argmax(1) == chance.argmax(1))[legal].mean() > 0.99
    there = arrays.baseline[:, 1] > 0
    assert quantity[there, 0] * arrays.scale[there, 0] == pytest.approx(counter[there, 0], rel=1e-3, abs=1e-2)
    price = low[:, 2] + position[:, 0] * (high - low)[:, 2]
    assert price[there] == pytest.approx(counter[there, 2], rel=1e-3, abs=1e-2)
    within = there & (lead.max(axis=1) > -0.5)  # the predicted delivery day is legal
    assert within.any()
    assert np.abs(lead.argmax(1) - counter[:, 1])[within].max() <= 0.51


class Errors(WorldObserver):
    def __init__(self):
        self.all = []

    def on_error(self, event):
        self.all.append(event)


def test_the_agent_plays_them(folder):
    setup, errors = official_setup(3, n_days=8, n_levels=3), Errors()
    spec = AgentSpec(f"{LitaAgentHRL.__module__}.LitaAgentHRL", {"weights": str(folder)}, competitor=True)
    world = FastWorld(setup.with_agents({0: spec, len(setup.factories) - 1: spec}), [errors])
    world.run()
    assert errors.all == []
    assert world.seats[0].agent.brain.layers.learned == ("l2", "l3")


def test_models_that_cannot_be_played_or_trained_on_are_told(samples, folder, tmp_path):
    save_model(train_l2_bc(list(samples[0])[:50], TrainConfig(epochs=1)), tmp_path / "l2.npz")
    with pytest.raises(WeightsError, match=r"l2\.npz.*train it on the rows of a dataset"):
        LitaAgentHRL(weights=tmp_path / "l2.npz")
    with pytest.raises(WeightsError, match="linear model, which does not explore"):
        Hierarchy.load(folder)
