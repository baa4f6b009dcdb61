"""Export of trained networks as ``.npz`` for `policy.networks`; each file is compared with torch when it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from apexrl.runs.atomic import atomic_file
from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.l2_manager import N_ROLE, N_STATIC, N_TEMPORAL, DayBatch, HorizonManagerPPO
from litaagent_std.hrl_xf.l3_executor import N_HISTORY, TemporalDecisionTransformer, ThreadBatch
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.policy.buckets import n_buckets
from litaagent_std.policy.features import THREAD_FEATURES
from litaagent_std.policy.networks import inference
from litaagent_std.policy.networks.inputs import BASELINE_SIZE, L4_SIZE, OFFER_SIZE
from litaagent_std.policy.networks.weights import FORMAT, FORMAT_VERSION, load_weights

__all__ = ["TOLERANCE", "ExportError", "export_layer", "random_days", "random_threads"]

TOLERANCE: Final = 1e-5
"""Largest difference between the torch and numpy forward pass, relative to 1 or to the value."""

Layer = HorizonManagerPPO | TemporalDecisionTransformer | AcceptanceModel | ThreadCoordinator


class ExportError(RuntimeError):
    """The exported network disagrees with the original."""


def export_layer(model: Layer, path: Path, meta: Mapping[str, Any]) -> None:
    """Write a network as ``.npz``, and check that numpy computes the same.

    Args:
        model: The network.
        path: The file.
        meta: Digests, horizon of the league, and the command that made it.

    Raises:
        ExportError: If the two differ by more than `TOLERANCE`.
    """
    full_meta = {**meta, "format": FORMAT, "format_version": FORMAT_VERSION, "kind": model.kind, "sizes": model.sizes}
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}
    with atomic_file(path) as file:
        np.savez(file, meta=np.array(json.dumps(full_meta, sort_keys=True)), **arrays)
    difference = parity(model.cpu(), path)
    if not difference <= TOLERANCE:
        raise ExportError(
            f"numpy's {model.kind} differs from torch's by {difference:.3g} (allowed: {TOLERANCE}); the two "
            "implementations disagree, so the weights must not be used"
        )


@torch.no_grad()
def parity(model: Layer, path: Path, count: int = 64, seed: int = 0) -> float:
    """Return the largest difference of the outputs on random inputs."""
    weights = load_weights(path)
    generator = torch.Generator().manual_seed(seed)
    if isinstance(model, ThreadCoordinator):
        threads = torch.randn(count, 5, L4_SIZE, generator=generator)
        mask = torch.rand(count, 5, generator=generator) < 0.7
        mask[:, 0] = True
        outputs = inference.CoordinatorNetwork(weights)(threads.numpy(), mask.numpy())
        return _difference([model(threads, mask)], [outputs])
    encoder = model.encoder if isinstance(model, HorizonManagerPPO) else model.encoder.day
    if isinstance(model, HorizonManagerPPO):
        day = random_days(count, encoder.league_horizon, generator)
        days, network = as_days(day), inference.GoalNetwork(weights)
        latents, (quantity, price) = model.latents(day), model(day)
        own, (units, prices) = network.latents(days), network(days)
        lines, usual = day.lines.view(-1, 1, 1), day.price.unsqueeze(-1)
        expected = [latents, quantity / lines, price / usual]
        return _difference(expected, [own, units / lines.numpy(), prices / usual.numpy()])
    batch = random_threads(count, encoder.league_horizon, encoder.n_buckets, generator)
    if isinstance(model, AcceptanceModel):
        offers = torch.randn(count, 3, OFFER_SIZE, generator=generator)
        accepted = inference.AcceptanceNetwork(weights)(as_threads(batch), offers.numpy())
        return _difference([torch.sigmoid(model(batch, offers))], [accepted])
    out = model(batch)
    logits = inference.DecisionNetwork(weights).outputs(as_threads(batch))
    return _difference([out.op, out.lead, out.quantity, out.position], list(logits))


def _difference(expected: list[Tensor], actual: list[np.ndarray]) -> float:
    pairs = [(e.double().numpy(), a.astype(np.float64)) for e, a in zip(expected, actual, strict=True)]
    return max(float((np.abs(e - a) / np.maximum(1.0, np.abs(e))).max()) for e, a in pairs)


def random_days(count: int, horizon: int, generator: torch.Generator) -> DayBatch:
    """Return random days of the right shapes."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    left = torch.randint(1, horizon + 2, (count, 1), generator=generator)
    mask = torch.arange(horizon + 1) < left
    lines = torch.randint(5, 12, (count,), generator=generator).float()
    price = 5.0 + 20.0 * torch.rand(count, 2, generator=generator)
    role = (torch.rand(count, N_ROLE, generator=generator) < 0.7).float()
    temporal = normal(count, horizon + 1, N_TEMPORAL) * mask.unsqueeze(-1)
    base = 10.0 * torch.rand(count, 7 * n_buckets(horizon) + 1, generator=generator)
    return DayBatch(normal(count, N_STATIC).clamp(-10, 10), temporal, role, mask, lines, price, base)


def random_threads(
    count: int, horizon: int, n_goal_buckets: int, generator: torch.Generator, length: int = 9
) -> ThreadBatch:
    """Return random threads of the right shapes."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    seen = torch.randint(0, length + 1, (count, 1), generator=generator)
    mask = torch.arange(length) < seen
    history = normal(count, length, N_HISTORY)
    names = THREAD_FEATURES["history"]
    history[:, :, names.index("mine")] = (history[:, :, names.index("mine")] > 0).float()
    history[:, :, names.index("lead")] = history[:, :, names.index("lead")].abs().clamp(max=1.0)
    ranges = normal(count, len(THREAD_FEATURES["ranges"]))
    ranges[:, THREAD_FEATURES["ranges"].index("lead_min")] = 0.0
    ranges[:, THREAD_FEATURES["ranges"].index("lead_max")] = torch.rand(count, generator=generator)
    thread = normal(count, len(THREAD_FEATURES["x_thread"]))
    answers = THREAD_FEATURES["x_thread"].index("answers")
    thread[:, answers] = (thread[:, answers] > 0).float()
    base = normal(count, BASELINE_SIZE)
    base[:, 4] = torch.rand(count, generator=generator)
    base[:, 6] = (base[:, 6] > 0).float()
    return ThreadBatch(
        random_days(count, horizon, generator),
        history * mask.unsqueeze(-1),
        mask,
        ranges,
        thread,
        normal(count, len(THREAD_FEATURES["x_partner"])),
        normal(count, 4 * n_goal_buckets),
        base,
        0.5 * normal(count),
    )


def as_days(day: DayBatch) -> inference.DayInputs:
    """Return the same days for numpy."""
    parts = (day.x_static, day.x_temporal, day.x_role, day.mask, day.lines, day.price, day.base)
    return inference.DayInputs(*(part.numpy() for part in parts))


def as_threads(batch: ThreadBatch) -> inference.ThreadInputs:
    """Return the same threads for numpy."""
    parts = (
        batch.history,
        batch.history_mask,
        batch.ranges,
        batch.x_thread,
        batch.x_partner,
        batch.goal,
        batch.baseline,
        batch.log_alpha,
    )
    return inference.ThreadInputs(as_days(batch.day), *(part.numpy() for part in parts))
