import pytest
import torch

from hmasd.networks.coordinator import SkillCoordinator


@pytest.fixture(params=[(torch.float32, 1e-5), (torch.float64, 1e-10)], ids=["float32", "float64"])
def precision(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param[0])
    yield request.param[1]
    torch.set_default_dtype(before)


def make(n_agents=3, blocks=2):
    torch.manual_seed(0)
    coordinator = SkillCoordinator(
        n_state=7, n_observation=5, n_agents=n_agents, n_team_skills=3, n_agent_skills=4, width=16, n_blocks=blocks
    )
    for parameter in coordinator.parameters():  # far from uniform, so that a wrong order or mask shows
        parameter.data += 0.3 * torch.randn_like(parameter)
    return coordinator, torch.randn(11, 7), torch.randn(11, n_agents, 5)


@pytest.mark.parametrize("floor", [0.0, 0.2])
@pytest.mark.parametrize("n_agents", [1, 3])
def test_one_teacher_forced_pass_gives_what_sampling_gave(precision, floor, n_agents):
    coordinator, state, observations = make(n_agents)
    choice = coordinator.act(state, observations, torch.Generator().manual_seed(1), floor=floor)
    scores = coordinator.evaluate(state, observations, choice.skills, floor=floor)
    assert (scores.log_probs - choice.log_probs).abs().max() <= precision
    assert (scores.values - choice.values).abs().max() <= precision
    assert choice.skills[:, 0].max() < 3
    assert len(choice.skills.unique(dim=0)) > 3


def test_a_choice_depends_on_those_before_it_and_on_none_after_it():
    coordinator, state, observations = make()
    skills = torch.zeros(11, 4, dtype=torch.int64)
    base = coordinator.evaluate(state, observations, skills).log_probs
    changed = skills.clone()
    changed[:, 2] = 1  # z_2
    after = coordinator.evaluate(state, observations, changed).log_probs
    assert torch.equal(base[:, :2], after[:, :2])
    assert (base[:, 3] - after[:, 3]).abs().min() > 1e-6


def test_every_choice_sees_the_state_and_all_observations():
    coordinator, state, observations = make()
    state.requires_grad_(True)
    observations.requires_grad_(True)
    skills = torch.zeros(11, 4, dtype=torch.int64)
    for token in range(4):
        log_probs = coordinator.evaluate(state, observations, skills).log_probs
        gradients = torch.autograd.grad(log_probs[:, token].sum(), (state, observations))
        assert gradients[0].abs().sum() > 0
        assert (gradients[1].abs().sum(dim=(0, 2)) > 0).all()


def test_a_floor_keeps_every_skill_in_play():
    coordinator, state, observations = make()
    coordinator.team_head[-1].bias.data[:] = torch.tensor([50.0, 0.0, 0.0])
    draws = torch.cat([coordinator.act(state, observations, floor=0.3).skills[:, 0] for _ in range(60)])
    shares = torch.bincount(draws, minlength=3) / len(draws)
    assert shares[1:].tolist() == pytest.approx([0.1, 0.1], abs=0.05)


def test_first_policy_is_nearly_uniform():
    torch.manual_seed(0)
    coordinator = SkillCoordinator(
        n_state=7, n_observation=5, n_agents=2, n_team_skills=2, n_agent_skills=4, width=64, n_blocks=1
    )
    scores = coordinator.evaluate(torch.randn(50, 7), torch.randn(50, 2, 5), torch.zeros(50, 3, dtype=torch.int64))
    assert scores.entropies[:, 0].min() > 0.99 * torch.log(torch.tensor(2.0))
    assert scores.entropies[:, 1:].min() > 0.99 * torch.log(torch.tensor(4.0))
