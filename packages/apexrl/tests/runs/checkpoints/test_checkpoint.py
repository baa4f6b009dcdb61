import io
import math
import os
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apexrl.runs.checkpoints.checkpoint import (
    FORMAT,
    Checkpoint,
    CheckpointStore,
    Retention,
    Schema,
    load_checkpoint,
    save_checkpoint,
)
from apexrl.runs.checkpoints.seal import seal
from apexrl.runs.checkpoints.tensors import save_tensors
from apexrl.runs.errors import (
    CheckpointDamagedError,
    CheckpointMissingError,
    DiskFullError,
    NotPlainError,
    SchemaMismatchError,
)

pytestmark = pytest.mark.usefixtures("global_rng")


@pytest.fixture
def store(tmp_path, schema) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints", schema, config={"lr": 0.1})


def damage(path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_networks_optimisers_and_plain_values_come_back_bit_by_bit(tmp_path, schema):
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=3e-4, amsgrad=True)
    network(torch.randn(8, 3)).sum().backward()
    optimiser.step()
    plain = {"n": 2**127 + 1, "f": 0.1, "t": (1, [None, True]), "b": b"\x00\xff", "s": "利塔", "inf": -math.inf, 3: {}}
    state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "plain": plain}

    save_checkpoint(tmp_path / "model.pt", Checkpoint(schema=schema, step=7, state=state, metrics={"r": 1.5}))
    loaded = load_checkpoint(tmp_path / "model.pt", schema)

    assert (loaded.step, loaded.metrics, loaded.schema, loaded.rng) == (7, {"r": 1.5}, schema, None)
    assert loaded.state["plain"] == plain
    assert loaded.state["network"]._metadata == state["network"]._metadata
    for name, tensor in state["network"].items():
        assert torch.equal(loaded.state["network"][name], tensor)
        assert loaded.state["network"][name].dtype == tensor.dtype
    twin = torch.optim.Adam(network.parameters())
    twin.load_state_dict(loaded.state["optimiser"])
    for one, two in zip(optimiser.state.values(), twin.state.values(), strict=True):
        assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize("name", ["model.pt", "l2_bc_epoch3.ckpt.pt", "models/hmasd_sync_enhanced_320000.pth"])
def test_torch_opens_the_file_directly_under_any_name(tmp_path, schema, name):
    state = {"w": torch.arange(3.0)}
    save_checkpoint(tmp_path / name, Checkpoint(schema=schema, step=1, state=state, config={"a": {"b": [1]}}))

    content = torch.load(tmp_path / name, weights_only=True)

    assert content["format"] == FORMAT
    assert content["schema"] == {"name": "tests.demo", "version": 2}
    assert content["config"] == {"a": {"b": [1]}}
    assert torch.equal(content["state"]["w"], state["w"])


def test_equal_checkpoints_are_equal_files(tmp_path, schema):
    for name in ("a.pt", "b.pt"):
        save_checkpoint(tmp_path / name, Checkpoint(schema=schema, step=1, state={"w": torch.ones(3)}))

    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "b.pt").read_bytes()


def test_a_view_does_not_drag_its_buffer_along_and_gradients_are_left_behind(tmp_path, schema):
    buffer = torch.arange(100_000.0)
    state = {"row": buffer[5:8], "strided": buffer[:10:3], "parameter": torch.nn.Parameter(torch.ones(2))}

    save_checkpoint(tmp_path / "x.pt", Checkpoint(schema=schema, step=0, state=state))
    loaded = load_checkpoint(tmp_path / "x.pt").state

    assert (tmp_path / "x.pt").stat().st_size < 10_000
    assert loaded["row"].tolist() == [5, 6, 7]
    assert loaded["strided"].tolist() == [0, 3, 6, 9]
    assert type(loaded["parameter"]) is torch.Tensor
    assert not loaded["parameter"].requires_grad


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(2), r"state\['a'\]\[1\] is a numpy\.ndarray.*torch\.from_numpy"),
        (np.float64(1), r"state\['a'\]\[1\] is a numpy\.float64"),
        (Schema(name="x", version=1), r"Schema"),
        ({1.5: 0}, r"state\['a'\]\[1\] has the key 1\.5"),
        (torch.eye(2).to_sparse(), r"sparse"),
        ({1, 2}, r"builtins\.set"),
    ],
)
def test_what_would_need_pickled_code_is_refused_by_its_place(tmp_path, schema, value, message):
    path = tmp_path / "x.pt"

    with pytest.raises(NotPlainError, match=message):
        save_checkpoint(path, Checkpoint(schema=schema, step=0, state={"a": [0, value]}))

    assert os.listdir(tmp_path) == []


def test_another_schema_is_refused_with_both_names(tmp_path, schema):
    save_checkpoint(tmp_path / "x.pt", Checkpoint(schema=schema, step=0, state={}))

    for other in (Schema(name="tests.demo", version=3), Schema(name="tests.other", version=2)):
        with pytest.raises(SchemaMismatchError, match=rf"x\.pt.*tests\.demo version 2.*{other}"):
            load_checkpoint(tmp_path / "x.pt", other)


def test_another_file_format_is_refused(tmp_path):
    for content, kind in (
        ({"format": FORMAT, "format_version": 99}, SchemaMismatchError),
        ([1], CheckpointDamagedError),
    ):
        buffer = io.BytesIO()
        torch.save(content, buffer)
        (tmp_path / "x.pt").write_bytes(seal(buffer.getvalue()))
        with pytest.raises(kind, match=r"x\.pt"):
            load_checkpoint(tmp_path / "x.pt")


def test_pickled_code_is_refused_even_under_a_seal(tmp_path):
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "state": os.system}, buffer)
    (tmp_path / "x.pt").write_bytes(seal(buffer.getvalue()))

    with pytest.raises(CheckpointDamagedError, match="could run code"):
        load_checkpoint(tmp_path / "x.pt")


def test_missing_unreadable_foreign_and_damaged_files_are_named(tmp_path, schema, sealed_bytes):
    with pytest.raises(CheckpointMissingError, match=r"nowhere\.pt"):
        load_checkpoint(tmp_path / "nowhere.pt")
    with pytest.raises(CheckpointDamagedError, match="regular file"):
        load_checkpoint(tmp_path)
    torch.save({"w": torch.ones(1)}, tmp_path / "foreign.pt")
    with pytest.raises(CheckpointDamagedError, match=r"foreign\.pt.*is not a checkpoint of this program"):
        load_checkpoint(tmp_path / "foreign.pt")
    (tmp_path / "cut.pt").write_bytes(sealed_bytes[:-1])
    with pytest.raises(CheckpointDamagedError, match=r"cut\.pt"):
        load_checkpoint(tmp_path / "cut.pt")


def test_the_store_opens_at_the_newest_and_keeps_the_last(store):
    assert store.latest() is None
    for step in (1, 2, 10, 9, 11):
        store.save(step, {"step": step})

    assert store.steps() == [9, 10, 11]
    latest = store.latest()
    assert latest is not None
    assert (latest.step, latest.state, latest.config) == (11, {"step": 11}, {"lr": 0.1})
    assert latest.rng is not None


def test_the_best_stays_beside_the_last(tmp_path, schema):
    retention = Retention(keep_last=2, metric="eval/return", mode="max", keep_best=1)
    values = [1.0, 5.0, math.nan, 5.0, 2.0, None, 3.0]
    for step, value in enumerate(values):
        store = CheckpointStore(tmp_path, schema, retention=retention)  # anew each time, as after a restart
        store.save(step, {}, metrics={} if value is None else {"eval/return": value})

    assert store.steps() == [1, 5, 6]
    best = store.best()
    assert best is not None
    assert (best.step, best.metrics) == (1, {"eval/return": 5.0})


@given(
    scores=st.lists(st.floats(), min_size=1, max_size=12),
    keep_last=st.none() | st.integers(1, 4),
    keep_best=st.integers(1, 3),
    mode=st.sampled_from(["max", "min"]),
)
def test_what_stays_is_the_last_and_the_best_and_nothing_else(scores, keep_last, keep_best, mode):
    retention = Retention(keep_last=keep_last, keep_best=keep_best, metric="m", mode=mode)
    metrics = {step: {"m": score} for step, score in enumerate(scores)}
    real = [step for step, score in enumerate(scores) if not math.isnan(score)]
    best = retention.best(metrics)
    surplus = retention.surplus(metrics)

    assert len(best) == min(keep_best, len(real))
    for kept in best:
        for other in set(real) - set(best):
            good, poor = (scores[kept], scores[other]) if mode == "max" else (-scores[kept], -scores[other])
            assert good > poor or (good == poor and kept < other)
    last = range(len(scores)) if keep_last is None else range(len(scores))[-keep_last:]
    assert set(surplus) == set(metrics) - set(last) - (set(best) if keep_last is not None else set())


def test_a_retention_that_keeps_nothing_is_refused():
    for fields in ({"keep_last": 0}, {"keep_best": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            Retention(**fields)


def test_a_damaged_newest_is_named_and_the_one_before_is_used(store, caplog):
    for step in (1, 2, 3):
        store.save(step, {"step": step})
    damage(store.path(3))
    store.path(2).write_bytes(store.path(2).read_bytes()[:100])

    latest = store.latest()

    assert latest is not None
    assert latest.step == 1
    folder = str(store.folder)
    store.latest()
    assert [record.getMessage().replace(folder, "F") for record in caplog.records] == [
        f"skipping checkpoint_3.pt: checkpoint 'F/checkpoint_3.pt' ({store.path(3).stat().st_size} bytes) is damaged: "
        "its content does not match its digest; using the one before it",
        "skipping checkpoint_2.pt: checkpoint 'F/checkpoint_2.pt' (100 bytes) is incomplete, or is not a checkpoint of "
        "this program; using the one before it",
    ], "each is named once"
    assert store.steps() == [1, 2, 3], "looking changes nothing"
    with pytest.raises(CheckpointDamagedError, match=r"checkpoint_3\.pt"):
        load_checkpoint(store.path(3))


def test_a_damaged_file_without_another_before_it_is_skipped_and_named_again_when_it_was_replaced(store, caplog):
    store.save(1, {"step": 1})
    for _ in range(2):
        damage(store.path(1))
        assert store.latest() is None
        store.save(1, {"step": 1})
    assert [record.getMessage().rpartition("; ")[2] for record in caplog.records] == 2 * ["there is none before it"]


@pytest.mark.parametrize("field", ["schema", "step", "state", "metrics", "format_version"])
def test_a_newest_that_is_sealed_but_malformed_is_passed_over(store, field):
    store.save(1, {"x": 1})
    store.save(2, {"x": 2})
    content = torch.load(store.path(2), weights_only=True)
    del content[field]
    save_tensors(store.path(2), content)

    checkpoint = store.resume()
    assert checkpoint is not None
    assert checkpoint.step == 1


def test_damaged_files_do_not_push_sound_ones_out(tmp_path, schema):
    for step in (1, 2, 3):
        CheckpointStore(tmp_path, schema).save(step, {})
    damage(tmp_path / "checkpoint_2.pt")
    damage(tmp_path / "checkpoint_3.pt")

    CheckpointStore(tmp_path, schema, retention=Retention(keep_last=2)).save(4, {})

    assert CheckpointStore(tmp_path, schema).steps() == [1, 2, 3, 4]


def test_resuming_sets_newer_damaged_files_aside(store, caplog):
    for step in (1, 2, 3):
        store.save(step, {})
    damage(store.path(3))

    resumed = store.resume()

    assert resumed is not None
    assert resumed.step == 2
    assert store.steps() == [1, 2]
    assert (store.folder / "checkpoint_3.pt.set-aside").exists()
    assert "set aside" in caplog.text


def test_rewinding_makes_an_earlier_checkpoint_the_newest_and_destroys_nothing(store):
    for step in (1, 2, 3):
        store.save(step, {"first": True})
    store.rewind(1)
    store.save(2, {"first": False})

    latest = store.latest()
    assert latest is not None
    assert (latest.step, latest.state) == (2, {"first": False})
    assert load_checkpoint(store.folder / "checkpoint_3.pt.set-aside").step == 3
    assert [path.name for path in store.rewind(None)] == ["checkpoint_1.pt.set-aside", "checkpoint_2.pt.set-aside-2"]
    assert load_checkpoint(store.folder / "checkpoint_2.pt.set-aside").state == {"first": True}
    assert store.latest() is None


def test_a_store_of_another_schema_is_refused_for_reading_and_writing(tmp_path, schema):
    CheckpointStore(tmp_path, schema).save(1, {})
    other = CheckpointStore(tmp_path, Schema(name="tests.demo", version=1))

    with pytest.raises(SchemaMismatchError):
        other.latest()
    with pytest.raises(SchemaMismatchError):
        other.save(2, {})


def test_several_stores_share_a_folder_by_their_patterns(tmp_path, schema):
    l2 = CheckpointStore(tmp_path, schema, pattern="l2_bc_epoch{step}.ckpt.pt")
    l3 = CheckpointStore(tmp_path, schema, pattern="l3_bc_epoch{step}.ckpt.pt", retention=Retention(keep_last=None))
    for step in range(5):
        l2.save(step, {})
        l3.save(step, {})
    (tmp_path / "l2_bc_epoch007.ckpt.pt").write_bytes(b"no canonical number")
    (tmp_path / "l2_bc_epochX.ckpt.pt").write_bytes(b"no number")

    assert l2.steps() == [2, 3, 4]
    assert l3.steps() == [0, 1, 2, 3, 4]
    assert l2.path(4).name == "l2_bc_epoch4.ckpt.pt"


@pytest.mark.parametrize("pattern", ["model.pt", "{step}_{step}.pt", "sub/{step}.pt"])
def test_a_pattern_without_one_step_is_refused(tmp_path, schema, pattern):
    with pytest.raises(ValueError, match="pattern"):
        CheckpointStore(tmp_path, schema, pattern=pattern)


def test_a_full_disk_leaves_the_older_checkpoints(store, file_size_limit):
    store.save(1, {"w": torch.zeros(10)})

    with file_size_limit(20_000), pytest.raises(DiskFullError, match=r"checkpoint_2\.pt"):
        store.save(2, {"w": torch.zeros(100_000)})

    assert os.listdir(store.folder) == ["checkpoint_1.pt"]
    store.save(2, {"w": torch.zeros(10)})
    assert store.steps() == [1, 2]


def test_a_file_that_vanishes_while_looking_is_no_fault(store, monkeypatch):
    store.save(1, {})
    monkeypatch.setattr(store, "steps", lambda: [1, 2])

    latest = store.latest()

    assert latest is not None
    assert latest.step == 1


def test_ordered_dictionaries_stay_ordered_dictionaries(tmp_path, schema):
    state = {"o": OrderedDict([("b", 1), ("a", 2)])}
    save_checkpoint(tmp_path / "x.pt", Checkpoint(schema=schema, step=0, state=state))

    assert list(load_checkpoint(tmp_path / "x.pt").state["o"]) == ["b", "a"]


def test_negative_steps_and_strange_configurations_are_refused(tmp_path, schema, store):
    with pytest.raises(ValueError, match="step -1"):
        store.save(-1, {})
    with pytest.raises(TypeError, match="mapping"):
        CheckpointStore(tmp_path, schema, config=[1])
