"""Training of the network that names partners' types: snapshots, epochs with exact resume, evaluation, export."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from apexrl.algorithms.devices import resolve_device
from apexrl.runs.atomic import atomic_file, ensure_folder
from apexrl.runs.digest import to_plain
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.data_pipeline.errors import DatasetError
from litaagent_std.hrl_xf.data_pipeline.options import SPLITS, Split
from litaagent_std.hrl_xf.training.config import TrainRunConfig
from litaagent_std.hrl_xf.training.evaluation.tables import summary_lines
from litaagent_std.hrl_xf.training.export import TOLERANCE, ExportError
from litaagent_std.hrl_xf.training.learner import Losses, PhaseSpec, run_phase
from litaagent_std.hrl_xf.training.partners.dataset import PartnerData, build_partner_data
from litaagent_std.hrl_xf.training.partners.evaluation import evaluate_types, frequencies
from litaagent_std.hrl_xf.training.partners.network import PartnerTypeModel
from litaagent_std.hrl_xf.training.record import TrainingRecord
from litaagent_std.hrl_xf.training.trainer import weights_digest
from litaagent_std.policy.arrays import Floats32, Ints
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.networks.inference import TypeNetwork
from litaagent_std.policy.networks.weights import FORMAT, FORMAT_VERSION, load_weights
from litaagent_std.policy.partners.signature import FEATURES, signature_digest
from litaagent_std.policy.partners.types import PartnerTypes

__all__ = ["export_types", "partner_spec", "train_partner_types"]

logger = logging.getLogger(__name__)

_NAME: Final = "partner"
_HELD_OUT: Final[tuple[Split, ...]] = ("val", "test")
_LEAST_STD: Final = 1e-3


def train_partner_types(config: TrainRunConfig, record: TrainingRecord, session: Session) -> Path:
    """Train the phase ``partner`` from all factories of the records, and write its weights for play.

    Args:
        config: The options.
        record: The run's record.
        session: The run's session.

    Returns:
        ``weights/partner.npz`` of the run.

    Raises:
        Interrupted: If a signal asked to stop; the same call resumes.
    """
    data = build_partner_data(
        config.data_dir,
        config.dataset_dir,
        split_seed=config.split_seed,
        ratios=config.split_ratios,
        num_workers=config.num_workers or None,
        on_progress=logger.info,
    )
    _log_split(data)
    facts = {"partner_digest": data.digest, "partner_worlds": data.manifest["worlds"], "partner_snapshots": len(data)}
    record.partner_data(facts, to_plain(asdict(config)))
    meta = _meta(data)
    spec = partner_spec(config, record.folder, data, meta)
    result = run_phase(spec, session)
    model = spec.model.cpu()
    assert isinstance(model, PartnerTypeModel)
    path = ensure_folder(record.folder / "weights") / "partner.npz"
    export_types(model, path, meta)
    types = PartnerTypes(load_weights(path))
    tables = {split: {"partner": evaluate_types(types, data, split)} for split in _HELD_OUT if len(data.rows(split))}
    for split, table in tables.items():
        for line in summary_lines(table):
            logger.info("Eval %s | %s", split, line)
    record.evaluation({split: {**record.content["evaluation"].get(split, {}), **t} for split, t in tables.items()})
    scores = {f"{s}/{k}": v for s, t in tables.items() for k, v in t["partner"]["all"]["scores"]["network"].items()}
    record.phase(spec, result, scores, weights_digest(model))
    known = [record.folder / name for name in record.content["weights"]]
    record.weights(list(dict.fromkeys([*known, path])), finished=True)
    logger.info("weights for play: %s", path)
    return path


def _log_split(data: PartnerData) -> None:
    """Log the number of worlds of each split.

    Raises:
        DatasetError: If there is nothing to train on.
    """
    if not len(data.rows("train")):
        raise DatasetError("no thread is recorded", "types are learned from offers and answers", "collect more worlds")
    logger.info("partner: %s worlds", ", ".join(f"{split}={data.n_worlds(split)}" for split in SPLITS))


def _meta(data: PartnerData) -> dict[str, Any]:
    return {
        "kind": PartnerTypeModel.kind,
        "types": list(ARCHETYPES),
        "features": list(FEATURES),
        "signature_digest": signature_digest(),
        "dataset": data.digest,
        "worlds": data.manifest["worlds"],
        "made_by": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def partner_spec(config: TrainRunConfig, folder: Path, data: PartnerData, meta: Mapping[str, Any]) -> PhaseSpec:
    """Return the phase: its network, with weights from the seed, and its data."""
    train = data.rows("train")
    features = np.asarray(data["features"][train])
    mean, std = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64) + _LEAST_STD
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = PartnerTypeModel(config.partner_hidden, *(torch.tensor(x, dtype=torch.float32) for x in (mean, std)))
    epochs = config.partner_epochs
    return PhaseSpec(
        name=_NAME,
        folder=folder,
        model=model,
        losses=_losses(model),
        loader=_Snapshots(data, _weights(config, data)),
        rows=train,
        val_rows=data.rows("val"),
        epochs=epochs,
        batch_size=config.partner_batch_size,
        lr=lambda epoch: config.partner_lr * max(0.03, 1.0 - (epoch - 1) / max(1, epochs)),
        line=lambda parts: f"Loss {parts['loss']:.4f} | accuracy {parts['accuracy']:.3f}",
        seed=config.seed,
        device=resolve_device(config.device),
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        save_every=config.save_every,
        patience=config.patience,
        batch_log_every=config.batch_log_every,
        meta=meta,
        label=f"{_NAME} ",
    )


def _weights(config: TrainRunConfig, data: PartnerData) -> Floats32:
    """Return the weight of every snapshot, ``[N]``: early days count more, and rare types, as far as asked for."""
    labels = np.asarray(data["label"], np.int64)
    shares = frequencies(labels[data.rows("train")])
    balance = np.where(shares > 0, np.maximum(shares, 1e-9), 1.0) ** -config.partner_balance  # [4]
    early = 1.0 / (1.0 + np.asarray(data["day"], np.float64) / config.partner_early)
    weights = early * balance[labels]
    return np.asarray(weights / weights.mean(), np.float32)


class _Snapshots:
    """Loader of snapshots, which are kept in memory."""

    def __init__(self, data: PartnerData, weights: Floats32) -> None:
        self._features = torch.from_numpy(np.array(data["features"]))
        self._label = torch.from_numpy(np.array(data["label"], np.int64))
        self._weight = torch.from_numpy(weights)

    def __call__(self, batches: list[Ints], device: torch.device) -> Iterator[dict[str, Tensor]]:
        for rows in batches:
            index = torch.from_numpy(rows)
            parts = {"features": self._features, "label": self._label, "weight": self._weight}
            yield {name: tensor[index].to(device) for name, tensor in parts.items()}


def _losses(model: PartnerTypeModel) -> Losses:
    """Return the loss: weighted cross-entropy of the type."""

    def losses(tensors: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        logits, label, weight = model(tensors["features"]), tensors["label"], tensors["weight"]
        each = functional.cross_entropy(logits, label, reduction="none")
        right = (logits.argmax(1) == label).to(logits.dtype)
        return (each * weight).sum() / weight.sum(), {"accuracy": right.mean()}

    return losses


def export_types(model: PartnerTypeModel, path: Path, meta: Mapping[str, Any]) -> None:
    """Write the network as ``.npz``, and check that numpy computes the same.

    Raises:
        ExportError: If the two differ by more than `TOLERANCE`.
    """
    full = {**meta, "format": FORMAT, "format_version": FORMAT_VERSION, "sizes": model.sizes}
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}
    with atomic_file(path) as file:
        np.savez(file, meta=np.array(json.dumps(full, sort_keys=True)), **arrays)
    features = torch.randn(256, len(FEATURES), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = torch.softmax(model(features), 1).numpy()
    difference = float(np.abs(expected - TypeNetwork(load_weights(path))(features.numpy())).max())
    if not difference <= TOLERANCE:
        raise ExportError(
            f"numpy's types differ from torch's by {difference:.3g} (allowed: {TOLERANCE}); the two implementations "
            "disagree, so the weights must not be used"
        )
