"""Every phase as a learner of the run loop: best epoch, patience, and files of older releases."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from apexrl.runs.checkpoints.checkpoint import load_checkpoint, save_checkpoint
from apexrl.runs.errors import SchemaMismatchError
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.acceptance import AcceptanceModel
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO, ReturnCritic
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training import TrainConfig
from litaagent_std.hrl_xf.training.config import TrainRunConfig
from litaagent_std.hrl_xf.training.data import GoalHat, rows_of
from litaagent_std.hrl_xf.training.l4_rounds import rounds_of
from litaagent_std.hrl_xf.training.learner import PhaseLearner, run_phase
from litaagent_std.hrl_xf.training.partners.phase import partner_spec
from litaagent_std.hrl_xf.training.phases import Specs, seeded
from litaagent_std.policy.partners.signature import FEATURES

CONFIG = TrainConfig(l2_batch_size=64, l3_batch_size=128, l4_batch_size=32, l2_lr_stages=("2:1e-4",), save_every=2)
HORIZON = 6


class Snapshots(dict):
    """Snapshots of partners made by rule."""

    def __init__(self):
        rng = np.random.default_rng(3)
        label = rng.integers(0, 4, 300)
        features = (rng.normal(size=(300, len(FEATURES))) + label[:, None]).astype(np.float32)
        super().__init__(features=features, label=label, day=rng.integers(0, 20, 300))

    def rows(self, split):
        return np.arange(0, 200) if split == "train" else np.arange(200, 300)


def goals(data):
    return GoalHat(data.macro["goal_q"], data.macro["goal_p"])


def l2(specs, folder, data, **options):
    options.setdefault("l2_objective", "bc")
    model = seeded(1, lambda: HorizonManagerPPO(HORIZON, dim=16))
    return specs(**options).l2("l2_bc", folder, model, rows_of(data.macro, "train"))


def l3(specs, folder, data, weights=None):
    model = seeded(1, lambda: TemporalDecisionTransformer(HORIZON, dim=16, layers=1, ensemble=2))
    return specs().l3(model, goals(data), weights)


def awr(specs, folder, data):
    return l3(specs, folder, data, np.linspace(0.5, 1.5, len(data.micro["config"]), dtype=np.float32))


def acceptance(specs, folder, data):
    return specs().acceptance(seeded(1, lambda: AcceptanceModel(HORIZON, dim=16)))


def critic(specs, folder, data):
    model = seeded(1, lambda: ReturnCritic(HORIZON, data.league_horizon))
    return specs().critic("critic", model, rows_of(data.macro, "train"))


def l4(specs, folder, data):
    train, held_out = (rounds_of(data, goals(data), split, 200) for split in ("train", "val"))
    return specs().l4(seeded(1, lambda: ThreadCoordinator(dim=16, layers=1)), train, held_out)


def partner(specs, folder, data):
    config = TrainRunConfig(partner_batch_size=32, partner_hidden=8, save_every=2)
    return partner_spec(config, folder, Snapshots(), {})


PHASES = {
    "l2": l2,
    "l2, conservative": partial(l2, l2_objective="cql"),
    "l3": l3,
    "awr": awr,
    "acceptance": acceptance,
    "critic": critic,
    "l4": l4,
    "partner": partner,
}
"""``tests/learners`` kills and resumes each of them, and plants NaN in what it learns from."""


def make_spec(phase, folder, data):
    def specs(**changes):
        return Specs(replace(CONFIG, **changes), folder, torch.device("cpu"), data)

    return PHASES[phase](specs, folder, data)


def test_checkpoints_of_older_releases_are_read(made_data, tmp_path):
    spec = make_spec("l2", tmp_path, made_data)
    with Session(tmp_path) as session:
        run_phase(replace(spec, epochs=2), session)
        path = tmp_path / "l2_bc_epoch2.ckpt.pt"
        old = load_checkpoint(path)
        for name in ("iteration", "total_timesteps"):  # these releases counted epochs only
            del old.state[name]
        save_checkpoint(path, old)
        again = make_spec("l2", tmp_path, made_data)
        assert run_phase(replace(again, epochs=3), session).epochs == 3
        other = make_spec("l2, conservative", tmp_path, made_data)
        with pytest.raises(SchemaMismatchError, match="does not fit"):
            run_phase(other, session)


def test_the_best_epoch_ends_a_phase_and_patience_is_remembered(made_data, tmp_path):
    def impatient():
        spec = make_spec("l2", tmp_path, made_data)
        return replace(spec, epochs=40, patience=2, lr=lambda epoch: 0.5)

    with Session(tmp_path) as session:
        first = run_phase(impatient(), session)
        assert first.stopped_early
        assert first.epochs == first.best_epoch + 2
        spec = impatient()
        again = run_phase(spec, session)  # there is nothing left to do
    assert (again.epochs, again.best_epoch, again.rows_per_second) == (first.epochs, first.best_epoch, 0.0)
    best = torch.load(tmp_path / f"l2_bc_epoch{first.epochs}.ckpt.pt", weights_only=True)["state"]["best"]
    assert all(torch.equal(tensor, best[name]) for name, tensor in spec.model.state_dict().items())
    assert PhaseLearner(spec).finished is None
