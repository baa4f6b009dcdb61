import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - torch's own convention

from hmasd.networks.discriminators import Discriminators

LIMIT = 2.0
N_STATE, N_OBSERVATION, N_SKILLS = 7, 5, 3


def make(lipschitz):
    torch.manual_seed(0)
    return Discriminators(
        n_state=N_STATE,
        n_observation=N_OBSERVATION,
        n_team_skills=N_SKILLS,
        n_agent_skills=N_SKILLS,
        width=32,
        lipschitz=lipschitz,
    )


def clusters(distance, n=200):
    """States, observations of two agents and skills ``[n, 3]``; each skill has a corner of its own for all three."""
    stream = torch.Generator().manual_seed(1)
    skills = torch.randint(0, N_SKILLS, (n, 3), generator=stream)
    states = 0.1 * torch.randn(n, N_STATE, generator=stream)
    observations = 0.1 * torch.randn(n, 2, N_OBSERVATION, generator=stream)
    states[:, :N_SKILLS] += distance * F.one_hot(skills[:, 0], N_SKILLS)
    observations[..., :N_SKILLS] += distance * F.one_hot(skills[:, 1:], N_SKILLS)
    return states, observations, skills


def train(networks, states, observations, skills, epochs=150):
    """Minimise the cross-entropy of both; returns their accuracies."""
    optimizer = torch.optim.AdamW(networks.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(epochs):
        team, agents = networks.logits(states, observations, skills[:, 0])
        loss = F.cross_entropy(team, skills[:, 0])
        loss = loss + F.cross_entropy(agents.flatten(0, 1), skills[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return [
        (logits.argmax(-1) == wanted).double().mean().item()
        for logits, wanted in ((team, skills[:, 0]), (agents, skills[:, 1:]))
    ]


@torch.no_grad()
def steepest(networks, states, observations, skills):
    """Largest change of the logits per unit of distance, of q_D and of q_d.

    Pairs are two samples, a sample and one close to it, and two inputs far from all samples.
    """
    stream = torch.Generator().manual_seed(2)
    order = torch.randperm(len(skills), generator=stream)

    def partners(inputs):
        noise = torch.randn(inputs.shape, generator=stream)
        far = 10.0 * torch.randn(inputs.shape, generator=stream)
        return [(inputs, inputs[order]), (inputs, inputs + 0.01 * noise), (far, far + noise)]

    slopes = []
    for (s, s_other), (o, o_other) in zip(partners(states), partners(observations), strict=True):
        # one pass for both, because each pass in training mode improves the estimate of the layers' norms
        passes = networks.logits(torch.cat([s, s_other]), torch.cat([o, o_other]), skills[:, 0].repeat(2))
        changes = [(logits[: len(s)] - logits[len(s) :]).norm(dim=-1) for logits in passes]
        distances = [(s - s_other).norm(dim=-1), (o - o_other).norm(dim=-1)]
        # a sample that is its own partner has no slope
        pairs = zip(changes, distances, strict=True)
        slopes.append([(change / distance)[distance > 1e-3].max() for change, distance in pairs])
    return torch.tensor(slopes).amax(dim=0)


@pytest.mark.parametrize("distance", [0.5, 10.0])
def test_limited_logits_change_by_at_most_the_limit_per_unit_of_distance(distance):
    networks, samples = make(LIMIT), clusters(distance)
    assert (steepest(networks, *samples) <= 1.05 * LIMIT).all()
    assert min(train(networks, *samples)) > 0.95
    assert (steepest(networks, *samples) <= 1.05 * LIMIT).all(), "also after they have learned to separate clusters"


def test_logits_without_a_limit_exceed_it():
    networks, samples = make(0.0), clusters(0.5)
    assert min(train(networks, *samples)) > 0.95
    assert (steepest(networks, *samples) > 1.05 * LIMIT).all()
