import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from apexrl.storage.samples import discounted_returns, gae, next_values


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def test_gae_by_hand():
    rewards, values = column(1.0, 2.0, 3.0), column(0.5, 1.0, 1.5)
    none = column(0, 0, 0)
    following = next_values(values, torch.tensor([2.0]).double(), none, none, none)
    advantages = gae(rewards, values, following, none, gamma=0.5, gae_lambda=0.5)
    # δ = 1 + .5·1 − .5 = 1; 2 + .5·1.5 − 1 = 1.75; 3 + .5·2 − 1.5 = 2.5; A₂ = 2.5, A₁ = 1.75 + .25·2.5, A₀ = 1 + .25·A₁
    torch.testing.assert_close(advantages, column(1 + 0.25 * 2.375, 2.375, 2.5))


def test_termination_bootstraps_nothing_and_stops_the_flow():
    rewards, values = column(1.0, 2.0, 3.0), column(0.5, 1.0, 1.5)
    terminated, none = column(0, 1, 0), column(0, 0, 0)
    following = next_values(values, torch.tensor([2.0]).double(), terminated, none, none)
    advantages = gae(rewards, values, following, terminated, gamma=0.5, gae_lambda=0.5)
    # A₁ = 2 − 1 = 1 (no future); A₀ = 1 + .25·1; A₂ = 2.5 belongs to the next episode.
    torch.testing.assert_close(advantages, column(1.25, 1.0, 2.5))


def test_time_out_bootstraps_from_the_true_final_observation():
    rewards, values = column(1.0, 2.0, 3.0), column(0.5, 1.0, 1.5)
    none, cut = column(0, 0, 0), column(0, 1, 0)
    final = column(99.0, 4.0, 99.0)  # only the middle entry may be read
    following = next_values(values, torch.tensor([2.0]).double(), none, cut, final)
    torch.testing.assert_close(following, column(1.0, 4.0, 2.0))
    advantages = gae(rewards, values, following, cut, gamma=0.5, gae_lambda=0.5)
    # A₁ = 2 + .5·4 − 1 = 3, not 2 + .5·V(s₁) − 1 nor V of the next episode's first observation.
    torch.testing.assert_close(advantages, column(1 + 0.25 * 3, 3.0, 2.5))


def test_steps_that_last_for_different_times_have_discounts_of_their_own():
    rewards, values, following = column(1.0, 2.0), column(0.5, 1.0), column(1.0, 4.0)
    advantages = gae(rewards, values, following, column(0, 0), gamma=column(0.25, 0.5), gae_lambda=0.5)
    # A₁ = 2 + .5·4 − 1 = 3; A₀ = 1 + .25·1 − .5 + .25·.5·3
    torch.testing.assert_close(advantages, column(0.75 + 0.125 * 3, 3.0))


def test_lambda_one_gives_discounted_returns_minus_values():
    generator = torch.Generator().manual_seed(3)
    rewards, values, final = torch.randn(3, 20, 4, generator=generator, dtype=torch.float64)
    dones = torch.rand(20, 4, generator=generator) < 0.2
    cut = dones & (torch.rand(20, 4, generator=generator) < 0.5)
    following = next_values(values, torch.randn(4).double(), dones & ~cut, cut, final)
    advantages = gae(rewards, values, following, dones, 0.97, 1.0)
    torch.testing.assert_close(advantages + values, discounted_returns(rewards, following, dones, 0.97))


@given(st.integers(1, 12), st.floats(0, 1), st.floats(0, 1), st.integers(0, 10_000))
def test_gae_matches_the_definition_as_a_sum(length, gamma, gae_lambda, seed):
    generator = torch.Generator().manual_seed(seed)
    rewards, values, following = torch.randn(3, length, 2, generator=generator, dtype=torch.float64)
    dones = torch.rand(length, 2, generator=generator) < 0.3
    advantages = gae(rewards, values, following, dones, gamma, gae_lambda)
    for env in range(2):
        for t in range(length):
            total, weight = 0.0, 1.0
            for k in range(t, length):  # A_t = Σ (γλ)^(k−t) δ_k up to the episode's border
                total += weight * (rewards[k, env] + gamma * following[k, env] - values[k, env]).item()
                weight *= gamma * gae_lambda
                if dones[k, env]:
                    break
            assert advantages[t, env].item() == pytest.approx(total, abs=1e-9)
