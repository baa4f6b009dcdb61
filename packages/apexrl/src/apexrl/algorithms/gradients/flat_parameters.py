"""All parameters of a module in one buffer, and all their gradients in another.

The optimiser then handles one tensor instead of a dozen, and the gradient's norm is one operation: for small networks
this is most of the cost of a step.
"""

import torch
from torch import Tensor, nn


class FlatParameters:
    """Makes a module's trainable parameters views of one tensor.

    The module keeps working as before, ``state_dict`` and ``load_state_dict`` included. Whoever replaces the
    parameters' memory (``module.to``, ``module.double``) need not do anything: :meth:`attach` gathers them again.

    Args:
        module: On its final device.

    Attributes:
        flat: The buffer, as a parameter for an optimiser; ``flat.grad`` holds all gradients.
    """

    def __init__(self, module: nn.Module) -> None:
        self.parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.flat = nn.Parameter(_gather(self.parameters))
        self.flat.grad = torch.zeros_like(self.flat)
        self._views: list[Tensor] = []
        self._share()

    @property
    def gradient(self) -> Tensor:
        """All gradients, in the order of the parameters."""
        assert self.flat.grad is not None  # made together with the buffer
        return self.flat.grad

    def attach(self) -> None:
        """Make sure that the buffer is what the module computes with, and that gradients arrive in it."""
        values = [parameter.data for parameter in self.parameters]
        if any(
            v.data_ptr() != view.data_ptr() or v.dtype != view.dtype
            for v, view in zip(values, self._views, strict=True)
        ):
            self.flat.data = _gather(self.parameters)
            self.flat.grad = torch.zeros_like(self.flat)
        self._share()

    def _share(self) -> None:
        sizes = [parameter.numel() for parameter in self.parameters]
        self._views = list(torch.split(self.flat.data, sizes))
        for parameter, view, gradient in zip(
            self.parameters, self._views, torch.split(self.gradient, sizes), strict=True
        ):
            parameter.data = view.view(parameter.shape)
            parameter.grad = gradient.view(parameter.shape)

    def clip(self, limit: float) -> Tensor:
        """Scale the gradient down to a norm and return the norm that it had."""
        norm: Tensor = torch.linalg.vector_norm(self.gradient)
        self.gradient.mul_((limit / (norm + 1e-6)).clamp(max=1.0))
        return norm


def _gather(parameters: list[nn.Parameter]) -> Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
