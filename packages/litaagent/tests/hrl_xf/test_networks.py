"""Properties of the networks with any weights: legal goals and decisions, masks, and use by PPO."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
import torch

from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.algorithms.ppo_config import PPOConfig
from apexrl.envs.gymnasium.wrapper import GymVecEnv
from litaagent_std.hrl_xf.l2_manager import GoalActor, GoalCritic, HorizonManagerPPO, goal_spaces
from litaagent_std.hrl_xf.l3_executor import TemporalDecisionTransformer
from litaagent_std.hrl_xf.l4_coordinator import ThreadCoordinator
from litaagent_std.hrl_xf.training.export import random_days, random_threads
from litaagent_std.policy.networks.inputs import GOAL_CAP, L4_SIZE, band_columns


def ordered_bands(day):
    static = day.x_static.clone()
    (buy_low, sell_low), (buy_high, sell_high) = band_columns()
    static[:, [buy_low, sell_low]], static[:, [buy_high, sell_high]] = -1.0, 1.0
    return replace(day, x_static=static)


@pytest.mark.parametrize("scale", [0.0, 1.0, 50.0])
def test_every_sample_of_the_policy_is_a_legal_goal(scale):
    torch.manual_seed(0)
    model = HorizonManagerPPO(40, 10, dim=16)
    day = ordered_bands(random_days(200, 10, torch.Generator().manual_seed(1)))
    legal = day.price.unsqueeze(-1) * (0.9 + 0.2 * torch.rand(200, 2, 4))
    base = torch.cat([day.base[:, :8], legal.flatten(1), day.base[:, 16:]], dim=1)
    day = replace(day, base=base)
    latents = scale * torch.randn(200, model.n_latents)
    quantity, price = model.decode(latents, day)
    days = model.encoder.days(day.mask).unsqueeze(1)
    assert (quantity >= 0).all()
    most = torch.maximum(GOAL_CAP * days * day.lines.view(-1, 1, 1), base[:, :8].view(-1, 2, 4))
    assert (quantity <= most + 1e-3).all()
    traded = day.x_role.unsqueeze(-1).expand_as(price) > 0
    relative = price / day.price.unsqueeze(-1) - 1.0
    assert (relative[traded].abs() <= 0.1 + 1e-5).all()
    assert (quantity[~traded] == 0).all()
    assert (price[~traded] == 0).all()


def test_sampling_and_scoring_agree():
    model = HorizonManagerPPO(10, dim=16)
    day = random_days(20, 10, torch.Generator().manual_seed(1))
    latents, log_prob = model.act(day, torch.Generator().manual_seed(2))
    again, entropy = model.evaluate(day, latents)
    assert torch.allclose(log_prob, again)
    assert torch.isfinite(entropy).all()


def test_a_new_network_is_the_heuristic():
    torch.manual_seed(0)
    day = random_days(50, 10, torch.Generator().manual_seed(1))
    l2 = HorizonManagerPPO(40, 10, dim=16)
    assert (l2.latents(day) == 0).all()
    batch = random_threads(50, 10, 4, torch.Generator().manual_seed(1))
    base = batch.baseline.clone()
    base[:, :3] = torch.eye(3)[torch.arange(50) % 3]
    base[:, 6] = 1.0
    thread = batch.x_thread.clone()
    thread[:, 7] = 1.0  # there is an offer to accept
    batch = replace(batch, baseline=base, x_thread=thread)
    out = TemporalDecisionTransformer(40, 10, dim=16)(batch)
    assert torch.equal(out.op.argmax(1), torch.arange(50) % 3)
    assert torch.equal(out.quantity[:, 0], base[:, 3])
    legal = out.lead.gather(1, (base[:, 4:5] * 10).round().long()).squeeze(1) > 0
    assert torch.equal(out.lead.argmax(1)[legal], (base[:, 4] * 10).round().long()[legal])
    assert (ThreadCoordinator()(torch.randn(3, 4, L4_SIZE), torch.ones(3, 4, dtype=torch.bool)) == 0).all()


def test_decisions_and_weights_can_be_sampled_and_scored():
    batch = random_threads(50, 10, 4, torch.Generator().manual_seed(1))
    l3 = TemporalDecisionTransformer(40, 10, dim=16)
    actions, log_prob = l3.act(batch, torch.Generator().manual_seed(2))
    again, entropy = l3.evaluate(batch, actions)
    assert torch.allclose(log_prob, again)
    policy = l3.distribution(batch)
    assert torch.allclose(policy.kl(policy), torch.zeros(50), atol=1e-6)
    assert torch.isfinite(entropy).all()
    ended = actions.clone()
    ended[:, 0] = 2.0  # whatever else would have been offered
    assert torch.allclose(l3.evaluate(batch, ended)[0], policy.op.log_probs[:, 2])
    l4, threads = ThreadCoordinator(), torch.randn(6, 4, L4_SIZE)
    mask = torch.arange(4) < torch.tensor([[1], [2], [3], [4], [4], [1]])
    weights, density = l4.act(threads, mask, torch.Generator().manual_seed(2))
    assert torch.allclose(l4.evaluate(threads, mask, weights)[0], density)
    assert (weights[~mask] == 0).all()


def test_rows_beyond_the_leagues_horizon_change_nothing():
    torch.manual_seed(0)
    model = HorizonManagerPPO(40, 10, dim=16)
    torch.nn.init.normal_(model.skip.weight, std=0.1)
    torch.nn.init.normal_(model.head.weight, std=0.1)
    day = random_days(20, 10, torch.Generator().manual_seed(1))
    wider = replace(
        day,
        x_temporal=torch.cat([day.x_temporal, torch.zeros(20, 30, day.x_temporal.shape[2])], dim=1),
        mask=torch.cat([day.mask, torch.zeros(20, 30, dtype=torch.bool)], dim=1),
    )
    assert torch.allclose(model.latents(day), model.latents(wider), atol=1e-6)
    with pytest.raises(ValueError, match="horizon=10"):
        HorizonManagerPPO(10)(wider)
    with pytest.raises(ValueError, match="at least 12"):
        HorizonManagerPPO(10).encoder.set_league_horizon(12)


class RandomDays(gymnasium.Env):
    """Random days; the reward grows as the latents approach 3."""

    observation_space, action_space = goal_spaces(10)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 4
        return self._observation(), {}

    def step(self, action):
        self.left -= 1
        return self._observation(), -float(np.square(action - 3.0).mean()), self.left == 0, False, {}

    def _observation(self):
        return self.np_random.normal(size=self.observation_space.shape).astype(np.float32)


def test_apexrl_ppo_trains_the_manager():
    runner = OnPolicyRunner(
        GymVecEnv([RandomDays] * 4),
        cfg=PPOConfig(num_steps=16, learning_rate=3e-3),
        actor_class=GoalActor,
        critic_class=GoalCritic,
        actor_cfg={"horizon": 10, "dim": 16},
        critic_cfg={"horizon": 10, "dim": 16},
        show_progress=False,
    )
    obs = torch.randn(50, *RandomDays.observation_space.shape, generator=torch.Generator().manual_seed(0))
    before = (runner.agent.policy.actor(obs) - 3.0).square().mean().item()
    runner.learn(num_iterations=4)
    assert (runner.agent.policy.actor(obs) - 3.0).square().mean().item() < before


@pytest.mark.parametrize("mode", ["residual", "direct"])
def test_padding_changes_no_decision_and_illegal_options_have_no_chance(mode):
    torch.manual_seed(0)
    model = TemporalDecisionTransformer(40, 10, mode=mode, dim=16)
    batch = random_threads(50, 10, 4, torch.Generator().manual_seed(1))
    longer = replace(
        batch,
        history=torch.cat([batch.history, torch.full((50, 5, 6), 7.0)], dim=1),
        history_mask=torch.cat([batch.history_mask, torch.zeros(50, 5, dtype=torch.bool)], dim=1),
    )
    first, second = model(batch), model(longer)
    assert torch.allclose(first.op, second.op, atol=1e-5)
    assert torch.allclose(first.quantity, second.quantity, atol=1e-5)
    answers = batch.x_thread[:, 7] > 0.5
    assert (first.op.softmax(-1)[~answers, 0] == 0).all()
    assert (first.op.softmax(-1)[answers, 0] > 0).all()
    assert (first.lead.softmax(-1)[~model.legal_leads(batch.ranges)] == 0).all()
    assert torch.isfinite(first.lead.softmax(-1)).all()


def test_a_thread_without_any_history_is_no_nan():
    model = TemporalDecisionTransformer(10, dim=16)
    batch = random_threads(4, 10, 4, torch.Generator().manual_seed(1))
    batch = replace(batch, history_mask=torch.zeros_like(batch.history_mask))
    assert torch.isfinite(model(batch).position).all()


def test_threads_are_weighed_whatever_their_order_and_beside_each_other():
    torch.manual_seed(0)
    model = ThreadCoordinator()
    torch.nn.init.normal_(model.out.weight)
    threads, mask = torch.randn(1, 4, L4_SIZE), torch.ones(1, 4, dtype=torch.bool)
    alpha = model(threads, mask)
    assert torch.allclose(model(threads[:, [2, 0, 3, 1]], mask), alpha[:, [2, 0, 3, 1]], atol=1e-5)
    hidden = torch.tensor([[True, True, True, False]])
    alone = model(threads, hidden)
    changed = threads.clone()
    changed[0, 3] = 9.0
    assert torch.allclose(model(changed, hidden)[0, :3], alone[0, :3], atol=1e-6)
    assert not np.allclose(alone[0, :3].detach(), alpha[0, :3].detach(), atol=1e-4)
