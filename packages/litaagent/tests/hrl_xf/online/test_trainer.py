import json
from dataclasses import astuple
from dataclasses import fields as dataclass_fields

import numpy as np
import pytest

from apexrl.execution import make_executor
from apexrl.runs.errors import ConfigurationError
from litaagent_std.agents.online.acting import ActingNet, PolicySet
from litaagent_std.agents.online.seat import DecisionRequest
from litaagent_std.agents.online.weights import save
from litaagent_std.hrl_xf.online.command import run_training, summary_of
from litaagent_std.hrl_xf.online.config import (
    EvolutionConfig,
    GateConfig,
    LayerConfig,
    MonitorConfig,
    OnlineConfig,
    PoolConfig,
    SurfaceConfig,
)
from litaagent_std.hrl_xf.online.jobs import play_jobs
from litaagent_std.hrl_xf.online.methods.evolution import EvolutionMethod
from litaagent_std.hrl_xf.online.monitor import Monitor, WindowStatistics
from litaagent_std.hrl_xf.online.opponents import OpponentPool
from litaagent_std.hrl_xf.online.trainer import Trainer
from litaagent_std.hrl_xf.online.worlds import draw_world

SMALL = LayerConfig(hidden=(8,), critic_hidden=(8,))
NOBODY = PoolConfig(slots=0, held_out=())


def options(folder, **changes):
    given = {
        "layers": ("l2", "l3", "l4"),
        "updates": 2,
        "worlds": 2,
        "days": (4,),
        "levels": 2,
        "l2": SMALL,
        "l3": SMALL,
        "l4": SMALL,
        "pool": NOBODY,
        "gate": GateConfig(every=0),
        "self_every": 0,
        "checkpoint_every": 1,
        "executor": "inline",
        "output_dir": folder,
        "quiet": True,
    }
    return OnlineConfig(**(given | changes))


def weights(trainer):
    return {f"{k}{n}": a for k, net in trainer.method.policies().nets.items() for n, a in net.arrays("").items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("method", ["ppo", "es", "surface"])
def test_a_run_that_was_stopped_goes_on_bit_by_bit(tmp_path, method):
    changes = {"method": method, "evolution": EvolutionConfig(pairs=1), "surface": SurfaceConfig(pairs=1)}
    whole, _ = run_training(options(tmp_path / "whole", updates=2, **changes))
    run_training(options(tmp_path / "parts", updates=1, **changes))
    parts, status = run_training(options(tmp_path / "parts", updates=2, **changes))
    assert status == 0
    assert_same(weights(whole), weights(parts))
    lines = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "parts")]
    assert lines[0] == lines[1]
    assert [json.loads(line)["step"] for line in lines[0].splitlines()] == [1, 2]
    assert parts.worlds == whole.worlds > 0
    assert summary_of(parts)["updates"] == 2
    assert list((tmp_path / "parts" / "tensorboard").iterdir())


@pytest.mark.parametrize("engine", ["processes", "ray"])
def test_every_engine_plays_the_same_batches_as_inline(engine, tmp_path):
    if engine == "ray":
        pytest.importorskip("ray")
    cfg = options(tmp_path, worlds=1)
    found = []
    for name in ("inline", engine):
        with make_executor(name, workers=1) as executor:
            trainer = Trainer(cfg, executor, tmp_path)
            found.append(play_jobs(executor, trainer.method.jobs(trainer.plans()), cfg.day_rewards))
    assert len(found[0]) == 2  # with exploration, and by the reference
    for one, other in zip(*found, strict=True):
        assert_same(values_of(one), values_of(other))


def values_of(rollout):
    """Everything in a rollout but its CPU time, by name."""
    found = {"version": rollout.version, "seed": rollout.seed, "n_days": rollout.n_days}
    for seat in rollout.seats:
        name = f"seat {seat.seat}"
        found |= {f"{name} score": seat.score, f"{name} health": np.array(astuple(seat.health))}
        found |= {f"{name} beaten {rival}": won for rival, won in seat.beaten.items()}
        for part in (seat.days, seat.rounds):
            fields = {} if part is None else {f.name: getattr(part, f.name) for f in dataclass_fields(part)}
            for field, value in fields.items():
                inner = value if isinstance(value, dict) else {"": value}
                found |= {f"{name} {type(part).__name__} {field} {key}": one for key, one in inner.items()}
    return found


def sight(gain, breach=0.0):
    return WindowStatistics(gain, 0.01, 1.0, breach, 0.0, 0.0)


def test_a_window_that_is_worse_rolls_back_and_a_plateau_stops():
    monitor = Monitor(MonitorConfig(window=2, errors=2.0, patience=3, breach_rate=0.05))
    assert [monitor.look(sight(gain)) for gain in (0.0, 0.1, 0.1)] == ["go on"] * 3
    assert monitor.best.gain == pytest.approx(0.1)
    assert [monitor.look(sight(gain)) for gain in (0.1, 0.0)] == ["go on", "roll back"]
    assert monitor.look(sight(0.09)) == "go on"  # a new window has begun
    assert monitor.look(sight(0.1, breach=0.3)) == "roll back"
    assert [monitor.look(sight(0.09)) for _ in range(2)] == ["go on", "stop"]


def test_rolling_back_restores_the_good_weights_under_a_new_number(tmp_path):
    with make_executor("inline") as executor:
        trainer = Trainer(options(tmp_path, layers=("l2",)), executor, tmp_path)
        trainer.step()  # the first version is good until a better one is known
        good = weights(trainer)
        trainer.step()
        assert any((weights(trainer)[name] != good[name]).any() for name in good)
        assert trainer.method.version == 2
        trainer._roll_back()
        assert_same(weights(trainer), good)
        assert trainer.method.version == 2
        trainer.step()  # what was collected after it is of its version
        assert trainer.method.version == 3


def test_the_gate_lets_only_the_better_through(tmp_path):
    cfg = options(tmp_path, layers=("l2",), gate=GateConfig(every=1, worlds=2, days=(4,)))
    with make_executor("inline") as executor:
        trainer = Trainer(cfg, executor, tmp_path)
        found = trainer.ask_gate()
    assert found["gate/mean"] == 0.0  # zeros are the shipped agent
    assert found["gate/passed"] == 0.0
    assert trainer.best is None
    told = json.loads((tmp_path / "gates.jsonl").read_text())
    assert told["answer"] == "open"
    assert told["low"] is None  # two worlds say nothing yet
    assert told["worlds"] == 2


def test_hard_opponents_are_drawn_more_often_and_the_pool_survives_a_restart(tmp_path):
    cfg = PoolConfig(competitors=("RandomStd", "GreedyStd"), held_out=("SyncRandomStd",), nobody=0.0, past_selves=1)
    pool = OpponentPool(cfg)
    for _ in range(30):
        pool.note("RandomStdAgent", won=True)
        pool.note("GreedyStdAgent", won=False)
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


class FakeSeat:
    def __init__(self, score):
        self.score = score


class FakeWorld:
    def __init__(self, score):
        self.seats = [FakeSeat(score)]


def test_evolution_climbs_a_hill():
    method = EvolutionMethod(EvolutionConfig(pairs=6, sigma=0.2, learning_rate=0.1, decay=0.0, inputs=()), seed=1)
    goal = np.linspace(-1, 1, 12)
    for _ in range(40):
        jobs = method.jobs([None, None])
        scores = [1.0 if not job.policies.nets else _height(job.policies, goal) for job in jobs]
        method.update(jobs, [FakeWorld(score) for score in scores])
    assert method.version == 40
    assert _height(method.policies(), goal) > 0.9


def test_evolution_moves_only_what_it_is_told_to():
    cfg = EvolutionConfig(pairs=2, inputs=("level_first",), outputs=("hold", "unit_value"))
    method = EvolutionMethod(cfg, seed=1)
    assert len(method.theta) == 4
    jobs = method.jobs([None])
    method.update(jobs, [FakeWorld(float(place)) for place in range(len(jobs))])
    net = method.policies().nets["l2"]
    assert np.flatnonzero(net.biases[0]).tolist() == [10, 11]
    assert np.flatnonzero(net.weights[0].any(1)).tolist() == [0]
    with pytest.raises(ConfigurationError, match="no output named nothing"):
        EvolutionMethod(EvolutionConfig(outputs=("nothing",)), seed=1)


def _height(policies, goal):
    return 1.0 - float(np.square(policies.nets["l2"].biases[0] - goal).mean())


def test_weights_are_written_and_read_without_loss(tmp_path):
    luck = np.random.default_rng(0)
    zeros = ActingNet.zeros("l2")
    net = ActingNet((luck.normal(size=zeros.weights[0].shape).astype(np.float32),), zeros.biases, zeros.log_std)
    save(PolicySet({"l2": net}, 4), tmp_path / "w.npz", seed=1)
    found = PolicySet.load(tmp_path / "w.npz")
    assert found.version == 4
    assert not found.rounds
    np.testing.assert_array_equal(found.nets["l2"].weights[0], net.weights[0])
    np.savez(tmp_path / "other.npz", meta=np.array(json.dumps({"kind": "l2"})))
    with pytest.raises(ValueError, match="lita train-online"):
        PolicySet.load(tmp_path / "other.npz")


@pytest.mark.parametrize(("digest", "message"), [("features_digest", "features abc"), ("l1_digest", "L1 abc")])
def test_weights_of_other_features_or_another_l1_are_refused(tmp_path, digest, message):
    save(PolicySet({"l2": ActingNet.zeros("l2")}), tmp_path / "w.npz", **{digest: "abc"})
    with pytest.raises(ValueError, match=message):
        PolicySet.load(tmp_path / "w.npz")


def test_weights_appear_whole_or_not_at_all(tmp_path, monkeypatch):
    save(PolicySet({"l2": ActingNet.zeros("l2")}, 1), tmp_path / "w.npz")

    def half(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(KeyboardInterrupt):
        save(PolicySet({"l2": ActingNet.zeros("l2")}, 2), tmp_path / "w.npz")
    assert PolicySet.load(tmp_path / "w.npz").version == 1
    assert [path.name for path in tmp_path.iterdir()] == ["w.npz"]


@pytest.mark.parametrize("method", ["ppo", "es", "surface"])
def test_places_are_where_all_our_seats_are_and_what_the_weights_play_at(tmp_path, method):
    cfg = options(tmp_path, method=method, layers=("l2",), levels=None, days=(10,), worlds=6, places=("last",))
    with make_executor("inline") as executor:
        trainer = Trainer(cfg, executor, tmp_path)
    plans = trainer.plans()
    assert [set(draw_world(plan).place.values()) for plan in plans] == [{"last"}] * 6
    assert len({plan.seed for plan in plans}) == 6
    assert PolicySet.load(trainer.save_weights()).places == ("last",)


def test_places_that_no_world_has_are_refused(tmp_path):
    with make_executor("inline") as executor:
        trainer = Trainer(options(tmp_path, places=("middle",)), executor, tmp_path)
    with pytest.raises(ConfigurationError, match="all at middle"):
        trainer.plans()


def test_weights_put_out_zeros_at_places_that_they_were_not_made_for():
    zeros = ActingNet.zeros("l2")
    net = ActingNet(zeros.weights, (np.ones_like(zeros.biases[0]),), zeros.log_std)
    view = np.zeros(zeros.weights[0].shape[0], np.float32)
    first, last = (DecisionRequest("day", 0, place, view, view) for place in ("first", "last"))
    policies = PolicySet({"l2": net}, places=("last",))
    assert not policies.answer(first).any()
    assert policies.answer(last).all()
