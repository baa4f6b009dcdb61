"""Value normalisation: critics predict standardised returns, whose running mean and variance live here."""

import torch
from torch import Tensor, nn


class ValueNorm(nn.Module):
    """Debiased exponential averages of the returns' mean and mean square.

    Args:
        decay: β of the averages; nearer to 1 remembers longer.
    """

    mean_sum: Tensor
    square_sum: Tensor
    weight: Tensor

    def __init__(self, decay: float = 0.99999) -> None:
        super().__init__()
        self.decay = decay
        for name in ("mean_sum", "square_sum", "weight"):
            self.register_buffer(name, torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, returns: Tensor) -> None:
        """Take in a batch of returns."""
        fresh = 1.0 - self.decay
        self.mean_sum.mul_(self.decay).add_(fresh * returns.double().mean())
        self.square_sum.mul_(self.decay).add_(fresh * returns.double().square().mean())
        self.weight.mul_(self.decay).add_(fresh)

    def _moments(self) -> tuple[float, float]:
        if float(self.weight) == 0.0:
            return 0.0, 1.0
        mean = float(self.mean_sum / self.weight)
        variance = float(self.square_sum / self.weight) - mean * mean
        return mean, max(variance, 1e-4) ** 0.5

    def normalize(self, returns: Tensor) -> Tensor:
        """(R − mean) / std."""
        mean, std = self._moments()
        return (returns - mean) / std

    def denormalize(self, values: Tensor) -> Tensor:
        """V·std + mean."""
        mean, std = self._moments()
        return values * std + mean
