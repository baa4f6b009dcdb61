"""The acceptance model: the probability that a partner accepts an offer, given thread, partner and day."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from litaagent_std.hrl_xf.l2_manager import direct
from litaagent_std.hrl_xf.l3_executor import ThreadBatch, ThreadEncoder, last_own
from litaagent_std.policy.networks.inputs import OFFER_SIZE, thread_columns

__all__ = ["AcceptanceModel"]


class AcceptanceModel(nn.Module):
    """P(partner accepts | offer, thread, partner); the thread is encoded once for any number of offers.

    Args:
        horizon: Largest number of delivery days after today.
        league_horizon: The league's horizon; default: ``horizon``.
        dim: Width of the network.
        layers: Blocks of attention.
    """

    kind = "acceptance"

    def __init__(self, horizon: int = 40, league_horizon: int | None = None, *, dim: int = 48, layers: int = 1) -> None:
        super().__init__()
        self.encoder = ThreadEncoder(horizon, league_horizon, extra=0, dim=dim, layers=layers)
        self.hidden = nn.Linear(dim + OFFER_SIZE + 6, dim)
        self.out = nn.Linear(dim, 1)
        self.skip = direct(self.encoder.n_inputs, 1)
        self.offer_skip = direct(OFFER_SIZE + 6, 1)
        self.sizes = {"horizon": horizon, "dim": dim, "layers": layers}

    def forward(self, batch: ThreadBatch, offers: Tensor) -> Tensor:
        """Return logits ``[M, O]``.

        Args:
            batch: The threads.
            offers: Offers without units ``[M, O, 4]``: quantity / lines, lead / horizon, relative price, advantage;
                in the units of the history.
        """
        code, context = self.encoder(batch, batch.x_thread[:, :0])
        own, _ = last_own(batch.history, batch.history_mask)
        columns = thread_columns()
        mine = own[:, list(columns.history_amounts)].unsqueeze(1)
        theirs = batch.x_thread[:, list(columns.offer_amounts)].unsqueeze(1)
        amounts = offers[:, :, :3]
        # [M, O, 4 + 6] the offers, and their distance from our last one and from the one on the table
        compared = torch.cat([offers, amounts - mine, amounts - theirs], dim=2)
        inputs = torch.cat([code.unsqueeze(1).expand(-1, offers.shape[1], -1), compared], dim=2)
        out: Tensor = self.out(torch.relu(self.hidden(inputs))) + self.offer_skip(compared)
        logits: Tensor = out.squeeze(-1) + self.skip(context)
        return logits
