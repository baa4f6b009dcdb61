"""What a checkpoint may hold: tensors and plain values, in dictionaries, lists and tuples."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from apexrl.runs.errors import NotPlainError

_LEAVES = (bool, int, float, str, bytes, type(None))


def storable(value: Any, where: str) -> Any:  # noqa: ANN401 - any tree of tensors and plain values
    """Copy a tree into the form in which it is written, or say what in it cannot be written.

    Tensors are detached, moved to the CPU and cut loose from larger storages, so that a view does not drag
    its whole buffer into the file. Everything else keeps its exact type, so that what is loaded equals what
    was saved.

    Args:
        value: The tree.
        where: The name of ``value`` in error messages.

    Raises:
        NotPlainError: If there is anything that ``torch.load(weights_only=True)`` would refuse or change.
    """
    if type(value) in _LEAVES:
        return value
    if isinstance(value, torch.Tensor):
        return _tensor(value, where)
    if type(value) in (dict, OrderedDict):
        return _mapping(value, where)
    if type(value) in (list, tuple):
        return type(value)(storable(item, f"{where}[{index}]") for index, item in enumerate(value))
    raise NotPlainError(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}",
        "a checkpoint holds tensors, numbers, strings, bytes, booleans and None in dictionaries, lists "
        "and tuples, because nothing else loads without running pickled code",
        "convert it first, an array by torch.from_numpy, a numpy number by .item()",
    )


def _tensor(value: torch.Tensor, where: str) -> torch.Tensor:
    if value.layout != torch.strided or value.is_quantized or value.is_meta:
        raise NotPlainError(
            f"{where} is a tensor of layout {value.layout} on {value.device}",
            "a checkpoint holds dense tensors",
            "convert it by .to_dense()",
        )
    plain = value.detach().as_subclass(torch.Tensor).cpu()
    is_view = plain.untyped_storage().nbytes() != plain.numel() * plain.element_size()
    return plain.clone(memory_format=torch.contiguous_format) if is_view else plain


def _mapping(value: dict[Any, Any], where: str) -> dict[Any, Any]:
    copy = type(value)()
    for key, item in value.items():
        if type(key) not in (str, int):
            raise NotPlainError(f"{where} has the key {key!r}", "keys must be strings or integers", "rename the key")
        copy[key] = storable(item, f"{where}[{key!r}]")
    if hasattr(value, "_metadata"):  # the versions of modules, which Module.state_dict hangs on its result
        copy._metadata = value._metadata  # type: ignore[attr-defined]  # an OrderedDict takes attributes
    return copy
