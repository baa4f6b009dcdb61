"""Taking a trained policy out of the engine: ONNX for any actor, ``.npz`` for plain MLPs.

Both exports contain the observation normaliser and give deterministic actions in the environment's units.
Each is run against the original before it is handed over; a difference raises instead of reaching production.
"""

import copy
import logging
import warnings
from importlib.util import find_spec
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from apexrl.arrays import Array, Floats32
from apexrl.export.numpy_policy import FORMAT_VERSION, NumpyPolicy
from apexrl.models.base import Actor, RecurrentActor
from apexrl.models.heads import ActionHead, CategoricalHead, GaussianHead, MultiCategoricalHead
from apexrl.models.mlp import ACTIVATIONS, MLPActor, MLPDiscreteActor
from apexrl.models.normalizers import RunningObservationNormalizer

TOLERANCE = 1e-5
"""Largest difference between an exported policy and its original."""


class ExportError(RuntimeError):
    """A policy cannot be exported, or the export disagrees with it."""


class _Deployed(nn.Module):
    """Normaliser, network and mode in one module."""

    def __init__(
        self,
        actor: Actor | RecurrentActor,
        normalizer: RunningObservationNormalizer | None,
        *,
        with_action_mask: bool,
    ) -> None:
        super().__init__()
        self.actor = actor
        self.normalizer = normalizer
        self.with_action_mask = with_action_mask

    def _normalise(self, obs: Tensor) -> Tensor:
        out: Tensor = obs if self.normalizer is None else self.normalizer(obs)
        return out

    def _decide(self, outputs: Tensor, mask: Tensor | None) -> Tensor:
        if mask is not None:
            outputs = outputs.masked_fill(~mask, torch.finfo(outputs.dtype).min)
        return self.actor.head.deterministic(outputs)


class DeployedPolicy(_Deployed):
    """``forward(obs[, action_mask]) -> actions``."""

    def forward(self, obs: Tensor, action_mask: Tensor | None = None) -> Tensor:
        """Choose actions ``[B, *action]`` for observations ``[B, *obs]``."""
        assert isinstance(self.actor, Actor)  # deployed_policy distinguishes
        return self._decide(self.actor.forward(self._normalise(obs)), action_mask)


class DeployedRecurrentPolicy(_Deployed):
    """``forward(obs, state, episode_starts[, action_mask]) -> actions, state``, one step at a time."""

    def forward(
        self, obs: Tensor, state: Tensor, episode_starts: Tensor, action_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Act for one step: ``obs [B, *obs]``, ``state [B, …]`` (zeros at first), ``episode_starts`` bool ``[B]``."""
        assert isinstance(self.actor, RecurrentActor)  # deployed_policy distinguishes
        normalised = self._normalise(obs).unsqueeze(0)
        outputs, state = self.actor.forward(normalised, state, episode_starts.unsqueeze(0))
        return self._decide(outputs.squeeze(0), action_mask), state


def deployed_policy(
    actor: Actor | RecurrentActor,
    normalizer: RunningObservationNormalizer | None = None,
    *,
    with_action_mask: bool = False,
) -> DeployedPolicy | DeployedRecurrentPolicy:
    """Return the policy as one module that maps raw observations to actions, in evaluation mode.

    Args:
        actor: The policy; it is not copied.
        normalizer: The observation normaliser it was trained with.
        with_action_mask: Whether the exported policy takes a mask of legal actions.

    Raises:
        ExportError: If a mask is asked for with continuous actions.
    """
    if with_action_mask and not actor.head.is_discrete:
        raise ExportError("with_action_mask=True needs a discrete policy.")
    kind = DeployedRecurrentPolicy if isinstance(actor, RecurrentActor) else DeployedPolicy
    return kind(actor, normalizer, with_action_mask=with_action_mask).eval()


def _example(policy: _Deployed, batch: int, seed: int) -> tuple[Tensor, ...]:
    """Draw random inputs of a policy."""
    generator = torch.Generator().manual_seed(seed)
    actor: Any = policy.actor
    space = actor.observation_space
    agents = (actor.num_agents,) if actor.agent_axes else ()
    parameter = next(actor.parameters())
    obs = torch.randn(batch, *agents, *(space.shape or ()), generator=generator)
    obs = (obs.abs() * 60).clamp(0, 255).byte() if str(space.dtype) == "uint8" else obs.to(parameter.dtype)
    inputs = [obs.to(parameter.device)]
    if isinstance(actor, RecurrentActor):
        state = actor.initial_state(batch)
        noise = torch.randn(state.shape, generator=generator).to(state)
        starts = torch.rand(batch, generator=generator) < 0.3
        inputs += [state + 0.1 * noise, starts.to(parameter.device)]
    if policy.with_action_mask:
        mask = torch.rand(batch, *agents, actor.head.num_inputs, generator=generator) < 0.5
        mask |= ~mask.any(-1, keepdim=True)
        inputs.append(_some_legal(mask, actor.head).to(parameter.device))
    return tuple(inputs)


def _some_legal(mask: Tensor, head: ActionHead) -> Tensor:
    """Return a mask in which each choice of a multi-discrete action has a legal option."""
    if isinstance(head, MultiCategoricalHead):
        parts = torch.split(mask, head.nvec, dim=-1)
        mask = torch.cat([part | ~part.any(-1, keepdim=True) for part in parts], dim=-1)
    return mask


def export_onnx(
    actor: Actor | RecurrentActor,
    path: str | PathLike[str],
    normalizer: RunningObservationNormalizer | None = None,
    *,
    with_action_mask: bool = False,
) -> None:
    """Write a policy as ONNX, to be run by onnxruntime and others without torch or this package.

    Inputs are ``obs``, for a recurrent actor also ``state`` and ``episode_starts``, and with `with_action_mask` last
    ``action_mask``; outputs are ``actions`` and, for a recurrent actor, ``next_state``. The first dimension of each is
    the batch, of any size; with several agents the second one are the agents. Needs ``pip install "apexrl[onnx]"``.

    Args:
        actor: The policy.
        path: File to write, usually ``*.onnx``.
        normalizer: The observation normaliser it was trained with.
        with_action_mask: Whether the exported policy takes a mask of legal actions.

    Raises:
        ExportError: If a package is missing, the network has no ONNX form, or the written policy decides differently
            from the original.
    """
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if missing:
        raise ExportError(f"ONNX export needs {', '.join(missing)}: pip install 'apexrl[onnx]'.")
    policy = deployed_policy(copy.deepcopy(actor), copy.deepcopy(normalizer), with_action_mask=with_action_mask).cpu()
    _write_onnx(policy, path)
    import onnxruntime  # type: ignore[import-untyped]  # it brings no types

    session = onnxruntime.InferenceSession(str(path))
    for batch, seed in ((1, 1), (7, 2)):
        inputs = _example(policy, batch, seed)
        with torch.no_grad():
            expected = policy(*inputs)
        given = session.run(None, {name: x.numpy() for name, x in zip(_input_names(policy), inputs, strict=True)})
        actual = tuple(torch.from_numpy(np.asarray(values)) for values in given)
        _compare(expected, actual[0] if isinstance(expected, Tensor) else actual)


def _input_names(policy: _Deployed) -> list[str]:
    names = ["obs", "state", "episode_starts"] if isinstance(policy.actor, RecurrentActor) else ["obs"]
    return [*names, "action_mask"] if policy.with_action_mask else names


def _write_onnx(policy: _Deployed, path: str | PathLike[str]) -> None:
    example = _example(policy, batch=3, seed=0)
    names = _input_names(policy)
    chatter = logging.getLogger("torch.onnx")  # about torchvision's absence
    level = chatter.level
    chatter.setLevel(logging.ERROR)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's own deprecations; what was written is compared below
            torch.onnx.export(
                policy,
                example,
                str(path),
                dynamo=True,
                input_names=names,
                output_names=["actions", "next_state"] if isinstance(policy.actor, RecurrentActor) else ["actions"],
                dynamic_shapes=tuple({0: torch.export.Dim("batch")} for _ in example),
                external_data=False,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        raise ExportError(
            f"{type(policy.actor).__name__} has no ONNX form: keep Python branches on tensor values and on the batch "
            "size out of forward. The exporter's reasons are in the error above."
        ) from error
    finally:
        chatter.setLevel(level)


def _compare(expected: Tensor | tuple[Tensor, ...], actual: Tensor | tuple[Tensor, ...]) -> None:
    pairs = [(expected, actual)] if isinstance(expected, Tensor) else zip(expected, actual, strict=True)
    for wanted, given in pairs:
        assert isinstance(wanted, Tensor)  # policies give tensors, or tuples of them
        assert isinstance(given, Tensor)
        difference = (wanted.double() - given.double()).abs().max().item() if wanted.numel() else 0.0
        if wanted.shape != given.shape or not difference <= TOLERANCE:
            raise ExportError(
                f"The exported policy differs from the original by {difference:.3g} (allowed: {TOLERANCE}), "
                f"shapes {list(given.shape)} and {list(wanted.shape)}. Keep Python branches on tensor values out "
                f"of forward."
            )


def export_npz(actor: Actor, path: str | PathLike[str], normalizer: RunningObservationNormalizer | None = None) -> None:
    """Write a plain MLP policy as ``.npz``, to be run by `apexrl.export.numpy_policy.NumpyPolicy` without torch.

    Args:
        actor: An `MLPActor` or `MLPDiscreteActor`.
        path: File to write, ``*.npz``.
        normalizer: The observation normaliser it was trained with.

    Raises:
        ExportError: If the actor is no plain MLP, or the written policy decides differently.
    """
    if not isinstance(actor, MLPActor | MLPDiscreteActor):
        raise ExportError(f"Only MLP actors export to npz, got {type(actor).__name__}. Use export_onnx.")
    arrays: dict[str, Any] = {
        "format_version": np.array(FORMAT_VERSION),
        "obs_dims": np.array(len(actor.observation_space.shape or ())),
        **_network_arrays(actor.net),
        **_head_arrays(actor.head),
    }
    if normalizer is not None:
        arrays["normalizer_shift"] = _array(normalizer.shift)
        arrays["normalizer_scale"] = _array(normalizer.scale)
        arrays["normalizer_clip"] = np.array(normalizer.clip, np.float32)
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    policy = deployed_policy(actor, normalizer)
    obs = _example(policy, batch=64, seed=0)[0]
    with torch.no_grad():
        expected = actor.forward(policy._normalise(obs))
    _compare(expected.cpu(), torch.from_numpy(NumpyPolicy.load(path).outputs(obs.cpu().numpy())))


def _array(tensor: Tensor) -> Floats32:
    return tensor.detach().cpu().numpy().astype(np.float32)


def _network_arrays(net: nn.Sequential) -> dict[str, Array]:
    names: list[str] = []
    arrays: dict[str, Array] = {}
    by_class = {cls: name for name, cls in ACTIVATIONS.items()}
    for i, layer in enumerate(net):
        if isinstance(layer, nn.Linear):
            names.append("linear")
            arrays[f"weight_{i}"] = np.ascontiguousarray(_array(layer.weight).T)
            arrays[f"bias_{i}"] = _array(layer.bias)
        elif isinstance(layer, nn.LayerNorm):
            names.append("layer_norm")
            arrays[f"weight_{i}"], arrays[f"bias_{i}"] = _array(layer.weight), _array(layer.bias)
            arrays[f"epsilon_{i}"] = np.array(layer.eps, np.float32)
        elif type(layer) in by_class:
            names.append(by_class[type(layer)])
        else:
            raise ExportError(f"{type(layer).__name__} has no numpy version. Use export_onnx.")
    return {"layers": np.array(names), **arrays}


def _head_arrays(head: ActionHead) -> dict[str, Array]:
    if isinstance(head, CategoricalHead):
        return {"head": np.array("categorical")}
    if isinstance(head, MultiCategoricalHead):
        return {"head": np.array("multi_categorical"), "nvec": np.array(head.nvec)}
    if isinstance(head, GaussianHead) and not head.state_dependent_std:
        arrays: dict[str, Array] = {"head": np.array("gaussian")}
        if head.squash:
            arrays |= {"center": _array(head.center), "half_range": _array(head.half_range)}
        return arrays
    raise ExportError("A Gaussian with state_dependent_std has no npz form. Use export_onnx.")
