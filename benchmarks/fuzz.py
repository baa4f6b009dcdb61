"""``make fuzz``: damage every kind of file that a command reads, and call its reader.

For each kind a small sound file is made, then mutated again and again; the reader is called in this process. It may
refuse the file with a `UserFacingError` (`WeightsError` where only numpy is allowed) or return what the sound file
holds. It must never return something else, raise something else, or take more than a few seconds. A share of the
mutations of sealed files is sealed again, as by somebody who knows the format: such a file may be accepted, but must
not crash its reader.

Configurations, parameters and metrics are texts that people write and that carry no digest: an accepted one must hold
exactly what its text says.
"""

# ruff: noqa: ANN401 - readers return anything

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import json
import logging
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field

from apexrl.configuration import configuration, from_command_line, from_mapping, read_yaml
from apexrl.export.numpy_policy import NumpyPolicy
from apexrl.runs.checkpoints.checkpoint import Checkpoint, Schema, load_checkpoint, save_checkpoint
from apexrl.runs.checkpoints.seal import LABEL
from apexrl.runs.digest import digest_config, to_yaml
from apexrl.runs.errors import UserFacingError
from apexrl.runs.metrics.jsonl import read_jsonl
from apexrl.runs.reading import SEAL, write_sealed
from apexrl.runs.run_dir import RunDir, RunRecord
from litaagent_std.arena.units import UnitLog, UnitStore
from litaagent_std.dashboard.views.arena import read_report
from litaagent_std.hrl_x.linear import Linear
from litaagent_std.hrl_x.training import L2Linear, load_model, save_model
from litaagent_std.hrl_xf.data_pipeline.dataset import FORMAT, SCHEMA_VERSION, OfflineData
from litaagent_std.hrl_xf.data_pipeline.samples import MacroSample, MicroSample
from litaagent_std.hrl_xf.data_pipeline.shards import write_arrays
from litaagent_std.hrl_xf.data_pipeline.split import SPLIT_NAME, WorldSplit
from litaagent_std.hrl_xf.data_pipeline.storage import load_samples, save_samples
from litaagent_std.hrl_xf.online.distillation.samples import read_inputs
from litaagent_std.hrl_xf.online.hierarchy.policies import Hierarchy
from litaagent_std.hrl_xf.online.hierarchy.rows import day_size
from litaagent_std.hrl_xf.online.methods.networks import untrained
from litaagent_std.hrl_xf.training.learner import read_weights_file, save_weights
from litaagent_std.hrl_xf.training.record import RECORD_NAME, TrainingRecord
from litaagent_std.policy.networks.npz import WeightsError
from litaagent_std.policy.networks.weights import load_weights
from litaagent_std.policy.parameters import Parameters
from litaagent_std.policy.partners import types
from litaagent_std.records.assembly import from_rows
from litaagent_std.records.reader import open_records
from litaagent_std.records.schema import TABLES
from litaagent_std.records.storage.segment import pack_world, read_segment
from litaagent_std.records.storage.store import RecordStore, segment_path
from litaagent_std.tournament.competitors.parameter_files import FORMAT as PARAMETERS
from litaagent_std.tournament.competitors.parameter_files import read_parameters
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.world.setup import HORIZON

OUTCOMES: Final = ("refused", "unchanged", "changed", "resealed", "crashed", "hung")
_HOSTILE: Final = (
    None,
    True,
    -1,
    0,
    10**11,
    10**400,
    1e308,
    "",
    "\ud800",
    "../../../etc/passwd",
    [],
    {},
    [1],
    {"a": 1},
)


@configuration
class FuzzConfig:
    """Mutate every kind of file that a command reads, and call its reader.

    The exit status is 1 if a reader accepted something else than was written, crashed or hung.
    """

    mutations: Annotated[int, Field(ge=1)] = 1000
    """Mutations per kind of file."""

    seconds: Annotated[float, Field(gt=0)] = 3600.0
    """Most seconds in all; kinds share them evenly."""

    hang: Annotated[float, Field(gt=0)] = 20.0
    """Seconds after which a reader counts as hung."""

    seed: int = 0
    """Seed of the mutations."""

    kinds: tuple[str, ...] = ()
    """Kinds to mutate. Default: all."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Attributes:
        path: A sound file.
        read: Its reader, as a command calls it.
        reseal: Makes the digest of a mutated file right again; None if it has none.
        as_text: Parses an undigested text independently of the reader; None where the sound file is what counts.
    """

    path: Path
    read: Callable[[], Any]
    reseal: Callable[[bytes], bytes] | None = None
    as_text: Callable[[bytes], Any] | None = None


class HungError(BaseException):
    """A reader did not return in time; no `Exception`, so that no reader takes it for damage."""


# -- mutations


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Return damaged bytes: bits flipped, bytes set, ranges cut, doubled, zeroed or inserted, or the end lost."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        size = len(changed)
        if not size:
            break
        start = draw.randrange(size)
        stop = min(size, start + draw.choice((1, 1, 2, 4, 8, 64, 1024)))
        kind = draw.randrange(9)
        if kind <= 2:
            changed[start] ^= 1 << draw.randrange(8)
        elif kind == 3:
            changed[start:stop] = draw.randbytes(stop - start)
        elif kind == 4:
            del changed[start:stop]
        elif kind == 5:
            changed[start:start] = changed[start:stop]
        elif kind == 6:
            del changed[start:]
        elif kind == 7:
            changed[start:stop] = bytes(stop - start)
        else:
            changed[start:start] = draw.choice(
                (b"\xff" * 8, b"0", b"9", b"-", b"[" * 5000, b"null", b'"', b"\x00", b"\n")
            )
    return bytes(changed)


def mutate_json(data: bytes, draw: random.Random) -> bytes:
    """Replace, remove or add a value somewhere in a JSON document."""
    content = json.loads(data)
    places = list(_places(content))
    holder, key = draw.choice(places)
    if draw.random() < 0.2:
        del holder[key]
    else:
        holder[key] = draw.choice(_HOSTILE)
    return json.dumps(content).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _reseal_json(data: bytes) -> bytes:
    content = json.loads(data)
    if isinstance(content, dict):
        content.pop(SEAL, None)
        with contextlib.suppress(UserFacingError):
            content[SEAL] = digest_config(content)
    return json.dumps(content).encode()


def _reseal_segment(data: bytes) -> bytes:
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def _reseal_archive(data: bytes) -> bytes:
    position = data.rfind(LABEL)
    body = data if position < 0 else data[: position + len(LABEL)]
    return body + hashlib.sha256(body).hexdigest().encode()


# -- sound files


def make_kinds(folder: Path) -> dict[str, Kind]:
    """Make a sound file of every kind."""
    kinds: dict[str, Kind] = {}
    for make in (_records, _dataset, _weights, _runs, _arena, _texts):
        kinds |= make(folder / make.__name__.strip("_"))
    return kinds


def _rows(world: int) -> dict[str, pa.Table]:
    draw = random.Random(world)

    def value(column: Any) -> Any:
        if pa.types.is_integer(column.type):
            return draw.randrange(100)
        if pa.types.is_floating(column.type):
            return draw.random()
        if pa.types.is_boolean(column.type):
            return draw.random() < 0.5
        return [draw.random() for _ in range(3)] if pa.types.is_list(column.type) else draw.choice(["a", "bc"])

    return {
        name: from_rows(
            name, world, [[value(column) for column in spec.columns] for _ in range(1 if name == "worlds" else 6)]
        )
        for name, spec in TABLES.items()
    }


def _records(folder: Path) -> dict[str, Kind]:
    store = RecordStore(folder / "records", {"seed": 0}, 7, shard_size=2)
    for world in range(3):
        store.add(world, pack_world(world, _rows(world)))
    records, segment = folder / "records", segment_path(folder / "records", 2)

    def tables() -> Any:
        opened = open_records(folder)
        return [opened.keys, *(opened.table(name) for name in TABLES), opened.world(opened.keys[0]).tables]

    kinds = {
        f"records {name}": Kind(records / name / "00000.parquet", tables) for name in ("turns", "factories", "days")
    }
    return {
        "records manifest": Kind(records / "manifest.json", tables, _reseal_json),
        "segment": Kind(segment, lambda: read_segment(segment), _reseal_segment),
        **kinds,
    }


def _dataset(folder: Path) -> dict[str, Kind]:
    draw = np.random.default_rng(0)
    parts = {
        half: write_arrays(folder / half, 12, [{"config": np.zeros(12, np.int32), "x": draw.random((12, 5))}])
        for half in ("macro", "micro")
    }
    nothing: dict[str, tuple[int, ...]] = {"train": (0,), "val": (), "test": ()}
    WorldSplit(1, (0.8, 0.1, 0.1), {"a": "b"}, nothing, nothing, {s: {} for s in nothing}).write(folder / SPLIT_NAME)
    digests = dict.fromkeys(("digest", "features_digest", "l1_digest"), "0" * 8)
    content = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **digests, "horizon": 5, "league_horizon": 5}
    content["arrays"] = {half: part.shapes for half, part in parts.items()}
    write_sealed(folder / "manifest.json", content | {"array_digests": {h: part.digests for h, part in parts.items()}})

    def read() -> Any:
        data = OfflineData.open(folder, check=False)
        return [
            data.manifest,
            data.split,
            *(np.array(part[name]) for part in (data.macro, data.micro) for name in part),
        ]

    macro = [MacroSample(day, draw.random(3), draw.random((2, 2)), draw.random(2)) for day in range(4)]
    micro = [MicroSample("n", draw.random((2, 3)), draw.random(3), draw.random(3), draw.random(4), draw.random(3))] * 3
    save_samples(macro, micro, folder / "samples")
    inputs = folder / "world_00000.npz"
    width = day_size(HORIZON)
    np.savez_compressed(inputs, l2=draw.random((3, width)).astype(np.float32))
    return {
        "dataset manifest": Kind(folder / "manifest.json", read, _reseal_json),
        "dataset array": Kind(folder / "macro" / "x.npy", read),
        "split": Kind(folder / SPLIT_NAME, read, _reseal_json),
        "samples": Kind(folder / "samples" / "samples.npz", lambda: load_samples(folder / "samples")),
        "distillation samples": Kind(inputs, lambda: read_inputs({0: inputs}, "l2")),
    }


def _weights(folder: Path) -> dict[str, Kind]:
    folder.mkdir(parents=True)
    torch.manual_seed(0)
    state, layer, linear, policy = (folder / name for name in ("l2_bc.pt", "partner.npz", "linear.npz", "policy.npz"))
    goals = untrained(("l2",), 0, {"l2": 4}).save(folder / "online") / "l2.npz"
    save_weights(state, torch.nn.Linear(6, 4), {"kind": "l2", "sizes": {"hidden": 4}})
    layer.write_bytes(Path(types.SHIPPED).read_bytes())
    draw = np.random.default_rng(0)
    save_model(L2Linear(Linear(draw.random(3), draw.random(3), draw.random((3, 2)), draw.random(2)), 2), linear)
    _numpy_policy(policy)
    return {
        "weights .pt": Kind(state, lambda: read_weights_file(state), _reseal_archive),
        "weights .npz": Kind(layer, lambda: _plain_weights(load_weights(layer))),
        "online weights": Kind(goals, lambda: _plain_weights(Hierarchy.load(goals.parent).nets["l2"])),
        "linear model": Kind(linear, lambda: load_model(linear)),
        "exported policy": Kind(policy, lambda: vars(NumpyPolicy.load(policy))),
    }


def _numpy_policy(path: Path) -> None:
    from gymnasium.spaces import Box, Discrete

    from apexrl.export.policy import export_npz
    from apexrl.models import MLPDiscreteActor

    export_npz(MLPDiscreteActor(Box(-1.0, 1.0, (3,)), Discrete(3), hidden_dims=[4]), path)


def _plain_weights(weights: Any) -> Any:
    return [dict(weights.arrays), dict(weights.meta)]


def _runs(folder: Path) -> dict[str, Kind]:
    checkpoint, run = folder / "checkpoint_3.pt", folder / "run"
    folder.mkdir(parents=True)
    schema = Schema(name="fuzz", version=1)
    save_checkpoint(checkpoint, Checkpoint(schema=schema, step=3, state={"w": torch.arange(8.0), "n": {"a": [1, 2]}}))
    RunDir.start(run, config={"lr": 0.1, "layers": [1, 2]}, seed=7).close()
    record = TrainingRecord.open(folder)
    record.write()
    path = folder / RECORD_NAME
    return {
        "checkpoint": Kind(checkpoint, lambda: vars(load_checkpoint(checkpoint, schema)), _reseal_archive),
        "run record": Kind(run / "run.json", lambda: vars(RunRecord.read(run)), _reseal_json),
        "training record": Kind(path, lambda: TrainingRecord.read(folder).content, _reseal_json),
    }


class _NotFoundError(UserFacingError):
    """A unit that counts as not played."""


def _arena(folder: Path) -> dict[str, Kind]:
    store, key = UnitStore(folder / "units"), "0" * 64
    store.put(key, {"score": 0.25, "by_day": [1.5, 2.5], "agent": "lita"})
    log = folder / "units.jsonl"
    with UnitLog(log) as units:
        for number in range(3):
            units.put(str(number) * 64, {"score": 0.1 * number})
    report = {
        "focal": "lita",
        "agents": [],
        "comparisons": [],
        "rules": {"mix": "official"},
        "block": "gate",
        "lead": 0.0,
    }
    write_sealed(folder / "report.json", report)

    def unit() -> Any:
        if (found := store.get(key)) is None:
            raise _NotFoundError("the unit is played again")
        return found

    def lines() -> Any:
        # a damaged unit is played again: what is there must be what was written
        with UnitLog(log) as units:
            kept = {n: units.get(str(n) * 64) for n in range(3)}
            extra = len(units) - sum(value is not None for value in kept.values())
        wrong = [value for n, value in kept.items() if value not in (None, {"score": 0.1 * n})]
        if not wrong and not extra and None in kept.values():
            raise _NotFoundError("some units are played again")
        return [kept, extra]

    return {
        "unit": Kind(next((folder / "units").glob("*.json")), unit, _reseal_json),
        "unit log": Kind(log, lines),
        "arena report": Kind(folder / "report.json", lambda: read_report(folder), _reseal_json),
    }


def _texts(folder: Path) -> dict[str, Kind]:
    import yaml

    folder.mkdir(parents=True)
    options, parameters, metrics = folder / "options.yaml", folder / "parameters.json", folder / "metrics.jsonl"
    options.write_text(to_yaml({"competitors": ["RandomStd", "lita"], "configs": 3, "steps": 60, "time_limit": 5.5}))
    values = {"hold": 0.5, "holding": 0.1} if "holding" in Parameters.__dataclass_fields__ else {"hold": 0.5}
    content = {"format": PARAMETERS, "parameters": values, "digest": digest_config(values)}
    parameters.write_text(json.dumps(content, indent=1))
    metrics.write_text("".join(json.dumps({"step": n, "loss": n / 7}) + "\n" for n in range(5)))

    def said_by_lines(data: bytes) -> Any:
        return [json.loads(line) for line in data.split(b"\n")[:-1]]

    return {
        "configuration": Kind(
            options,
            lambda: from_mapping(TournamentConfig, read_yaml(options)),
            as_text=lambda data: from_mapping(TournamentConfig, yaml.safe_load(data.decode()) or {}),
        ),
        "parameters": Kind(parameters, lambda: read_parameters(str(parameters))),
        "metrics": Kind(metrics, lambda: read_jsonl(metrics), as_text=said_by_lines),
    }


# -- the run


def fingerprint(value: Any) -> str:
    """Return a text that is the same for the same values, arrays, tensors and tables included."""
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, torch.Tensor):
        return fingerprint(value.numpy())
    if isinstance(value, pa.Table):
        return f"table {value.schema.names} {value.to_pylist()!r}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {fingerprint(item)}" for key, item in sorted(value.items(), key=repr)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(fingerprint, value)) + "]"
    if hasattr(value, "__dataclass_fields__"):
        return fingerprint({name: getattr(value, name) for name in value.__dataclass_fields__})
    return repr(value)


@contextlib.contextmanager
def _watched(seconds: float) -> Iterator[None]:
    """Raise `HungError` after some seconds; if that does not get through, end the process with its stack."""

    def give_up(*_: object) -> None:
        raise HungError

    previous = signal.signal(signal.SIGALRM, give_up)
    faulthandler.dump_traceback_later(3 * seconds, exit=True, file=sys.__stderr__)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, previous)


def outcome_of(kind: Kind, data: bytes, sound: str, resealed: bool, hang: float) -> str:
    """Write damaged bytes, call the reader and name what happened; a crash is named with its exception."""
    kind.path.write_bytes(data)
    try:
        with _watched(hang):
            text = fingerprint(kind.read())
    except (UserFacingError, WeightsError):
        return "refused"
    except HungError:
        return "hung"
    except Exception as error:  # whatever a reader lets through is what this program looks for
        return f"crashed: {type(error).__name__}: {error!s:.200}"
    if text == sound:
        return "unchanged"
    if kind.as_text is not None:
        return "unchanged" if text == fingerprint(kind.as_text(data)) else "changed"
    return "resealed" if resealed else "changed"


def fuzz(name: str, kind: Kind, config: FuzzConfig, seconds: float) -> tuple[Counter[str], list[str]]:
    """Mutate one kind; return how often each outcome was, and a line for each defect."""
    original = kind.path.read_bytes()
    with _watched(60.0):
        sound = fingerprint(kind.read())
    counts: Counter[str] = Counter()
    defects: list[str] = []
    until = time.monotonic() + seconds
    for number in range(config.mutations):
        if time.monotonic() > until:
            break
        draw = random.Random(f"{config.seed} {name} {number}")
        resealed = kind.reseal is not None and draw.random() < 0.25
        structured = kind.path.suffix == ".json" and draw.random() < 0.5
        data = (mutate_json if structured else mutate)(original, draw)
        if resealed and kind.reseal is not None:
            with contextlib.suppress(ValueError, RecursionError):
                data = kind.reseal(data)
        outcome = outcome_of(kind, data, sound, resealed, config.hang)
        counts[outcome.partition(":")[0]] += 1
        if outcome.startswith(("changed", "crashed", "hung")):
            defects.append(f"{name}, mutation {number} of seed {config.seed}: {outcome}")
    kind.path.write_bytes(original)
    return counts, defects


def main(config: FuzzConfig) -> int:
    """Mutate all kinds and print a table."""
    logging.disable(logging.WARNING)
    defects: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        kinds = make_kinds(Path(folder))
        chosen = {name: kind for name, kind in kinds.items() if not config.kinds or name in config.kinds}
        print(f"seed {config.seed}, {config.mutations} mutations of each of {len(chosen)} kinds", flush=True)
        print(f"{'kind':22}" + "".join(f"{name:>11}" for name in OUTCOMES))
        for name, kind in chosen.items():
            counts, found = fuzz(name, kind, config, config.seconds / len(chosen))
            defects += found
            print(f"{name:22}" + "".join(f"{counts[outcome]:>11}" for outcome in OUTCOMES), flush=True)
    for line in defects[:50]:
        print(line)
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main(from_command_line(FuzzConfig, sys.argv[1:], "python -m benchmarks.fuzz")))
