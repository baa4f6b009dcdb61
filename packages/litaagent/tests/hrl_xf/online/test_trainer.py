import json
from dataclasses import astuple, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path

import numpy as np
import pytest
import torch

from apexrl.execution import make_executor
from apexrl.runs.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from apexrl.runs.errors import ConfigurationError
from litaagent_std.hrl_xf.online.command import run_training, show_summary, summary_of
from litaagent_std.hrl_xf.online.config import (
    EvolutionConfig,
    GateConfig,
    LayerConfig,
    OnlineConfig,
    PoolConfig,
    SurfaceConfig,
)
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.jobs import play_jobs
from litaagent_std.hrl_xf.online.trainer import Trainer
from litaagent_std.hrl_xf.online.worlds import draw_world

SMALL = LayerConfig(dim=8, critic_hidden=(8,))
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
    return {f"{k}{n}": a for k, net in trainer.method.policies().nets.items() for n, a in net.arrays.items()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def learn(trainer):
    trainer.collect()
    trainer.update()


METHODS = {
    "ppo": {},
    "ppo, opponents": {"layers": ("l2",), "pool": PoolConfig(competitors=("RandomStd",), held_out=(), nobody=0.2)},
    "es": {"method": "es", "evolution": EvolutionConfig(pairs=1)},
    "surface": {"method": "surface", "surface": SurfaceConfig(pairs=1)},
}
"""``tests/learners`` kills and resumes each of them, and plants NaN in what it learns from."""


def test_the_command_resumes_a_run_and_a_finished_one_stays_as_it_is(tmp_path, capsys):
    first, _ = run_training(options(tmp_path, updates=1))
    show_summary(first)
    assert "unfinished" not in capsys.readouterr().out
    first.cfg = replace(first.cfg, updates=2)
    show_summary(first)
    assert "unfinished: run the same command again to resume" in capsys.readouterr().out
    for best, said in ((None, "nothing has passed the gate, so the newest weights play"), (Path("v1"), "gate: v1")):
        first.cfg, first.best = replace(first.cfg, gate=GateConfig(every=1)), best
        show_summary(first)
        assert said in capsys.readouterr().out
    first.cfg = replace(first.cfg, warm=first.best)
    show_summary(first)
    assert "nothing has passed the gate" in capsys.readouterr().out
    trainer, status = run_training(options(tmp_path, updates=2))
    assert status == 0
    assert trainer.worlds == 2 * first.worlds > 0
    lines = (tmp_path / "metrics.jsonl").read_text()
    assert [json.loads(line)["step"] for line in lines.splitlines()] == [1, 2]
    assert {path.name for path in tmp_path.glob("checkpoints/*.pt")} == {"checkpoint_1.pt", "checkpoint_2.pt"}
    assert list((tmp_path / "tensorboard").iterdir())
    again, _ = run_training(options(tmp_path, updates=2))
    assert_same(weights(trainer), weights(again))
    assert (tmp_path / "metrics.jsonl").read_text() == lines
    assert summary_of(again)["updates"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"days": (2, 6)}, "--days 2 6 will not do"),
        ({"gate": GateConfig(days=(2,))}, "--gate.days 2 will not do"),
        ({"days": (4,), "levels": None}, "lengths of 5 or more"),
    ],
)
def test_worlds_that_are_too_short_are_refused_before_one_is_played(tmp_path, changes, message):
    with pytest.raises(ConfigurationError, match=message):
        Trainer(options(tmp_path, **changes), make_executor("inline"), tmp_path)


def test_checkpoints_of_older_releases_are_read_and_early_stopping_is_remembered(tmp_path):
    run_training(options(tmp_path, updates=1))
    path = tmp_path / "checkpoints" / "checkpoint_1.pt"
    old = load_checkpoint(path)
    for name in ("iteration", "total_timesteps"):  # these releases counted updates only
        del old.state[name]
    old.state["stopped"] = "no better window"
    save_checkpoint(path, old)
    trainer, _ = run_training(options(tmp_path, updates=5))
    assert trainer.updates == 1
    assert summary_of(trainer)["stopped"] == "no better window"


def test_workers_play_the_same_batches_as_this_process(tmp_path):
    cfg = options(tmp_path, worlds=1)
    batches = []
    for engine in ("inline", "processes"):  # Ray's workers run the same function: the tournament's tests play on them
        with make_executor(engine, workers=1) as executor:
            trainer = Trainer(cfg, executor, tmp_path)
            batches.append(play_jobs(executor, trainer.method.jobs(trainer.plans()), cfg.day_rewards))
    assert len(batches[0]) == 2  # with exploration, and by the reference
    for inline, other in zip(*batches, strict=True):
        assert_same(values_of(inline), values_of(other))


def values_of(rollout):
    """Everything in a rollout but its CPU time, by name."""
    values = {"version": rollout.version, "seed": rollout.seed, "n_days": rollout.n_days}
    for seat in rollout.seats:
        name = f"seat {seat.seat}"
        values |= {f"{name} score": seat.score, f"{name} health": np.array(astuple(seat.health))}
        values |= {f"{name} beaten {rival}": won for rival, won in seat.beaten.items()}
        for part in (seat.days, seat.rounds):
            fields = {} if part is None else {f.name: getattr(part, f.name) for f in dataclass_fields(part)}
            for field, value in fields.items():
                inner = value if isinstance(value, dict) else {"": value}
                values |= {f"{name} {type(part).__name__} {field} {key}": array for key, array in inner.items()}
    return values


def test_rolling_back_restores_the_good_weights_under_a_new_number(tmp_path):
    with make_executor("inline") as executor:
        trainer = Trainer(options(tmp_path, layers=("l2",)), executor, tmp_path)
        learn(trainer)  # the first version is good until a better one is known
        good = weights(trainer)
        learn(trainer)
        assert any((weights(trainer)[name] != good[name]).any() for name in good)
        assert trainer.method.version == 2
        trainer._roll_back()
        assert_same(weights(trainer), good)
        assert trainer.method.version == 2
        learn(trainer)  # what was collected after it is of its version
        assert trainer.method.version == 3


def test_the_gate_lets_only_the_better_through(tmp_path):
    cfg = options(tmp_path, layers=("l2",), gate=GateConfig(every=1, worlds=2, days=(4,)))
    with make_executor("inline") as executor:
        trainer = Trainer(cfg, executor, tmp_path)
        metrics = trainer.evaluate()
    assert metrics["gate/mean"] == 0.0  # zeros are the shipped agent
    assert metrics["gate/passed"] == 0.0
    assert trainer.best is None
    record = json.loads((tmp_path / "gates.jsonl").read_text())
    assert record["answer"] == "open"
    assert record["gate"] == "online-0-0"  # its seeds depend on the run's seed and the update alone
    assert record["low"] is None  # two worlds say nothing yet
    assert record["worlds"] == 2


@pytest.mark.parametrize("method", ["ppo", "es", "surface"])
def test_all_our_seats_are_at_the_levels_to_learn_for_and_the_weights_act_there(tmp_path, method):
    cfg = options(tmp_path, method=method, layers=("l2",), levels=None, days=(10,), worlds=6, places=("last",))
    with make_executor("inline") as executor:
        trainer = Trainer(cfg, executor, tmp_path)
    plans = trainer.plans()
    assert [set(draw_world(plan).seat_levels.values()) for plan in plans] == [{"last"}] * 6
    assert len({plan.seed for plan in plans}) == 6
    assert Hierarchy.load(trainer.save_weights()).levels == ("last",)


def test_levels_that_no_world_has_are_refused(tmp_path):
    with make_executor("inline") as executor:
        trainer = Trainer(options(tmp_path, places=("middle",)), executor, tmp_path)
    with pytest.raises(ConfigurationError, match="all at middle"):
        trainer.plans()


def test_a_run_does_not_depend_on_the_threads_of_the_process(tmp_path):
    """Sums of a large batch are split among threads, and rounded in another order."""
    before, results = torch.get_num_threads(), []
    wide = LayerConfig(dim=64, critic_hidden=(256, 256), minibatch=4096, epochs=2)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        cfg = options(tmp_path / str(threads), layers=("l2",), l2=wide, updates=2, worlds=8, days=(12,))
        results.append(weights(run_training(cfg)[0]))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert_same(*results)
