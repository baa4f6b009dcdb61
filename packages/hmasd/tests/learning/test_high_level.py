from dataclasses import replace

import pytest
import torch

from hmasd.learning.high_level import rollout_intervals, token_mask
from hmasd.tasks import make_agent, make_env
from hmasd.training.collection import Collector


@pytest.fixture
def cut(small, float64):
    """An agent with a batch whose intervals end in all four ways, its intervals, and the collector.

    Per environment, intervals of 4 + 4 + 1 steps fill the first two episodes; the third has made 4 + 1 steps at the
    barrier, so its second skills last for 3 more. The first episode of environment 0 and the second of environment 2
    end by themselves, the others at the time limit.
    """
    config = small(gamma=0.8, gae_lambda=0.7)
    env = make_env(config, config.num_envs, config.seed)
    agent, collector = make_agent(config, env), Collector(env, config.seed)
    collector.collect(agent, config.rollout_steps)
    rollout = agent.rollout
    for step, env_index in ((8, 0), (17, 2)):
        rollout.truncated[step, env_index], rollout.terminated[step, env_index] = False, True
    stream = torch.Generator().manual_seed(5)
    rollout.rewards[:] = torch.randn(rollout.rewards.shape, generator=stream)
    rollout.skill_values[:] = torch.randn(rollout.skill_values.shape, generator=stream)
    # Like nothing that comes after a reset, so that the values there differ from those of the true final state.
    rollout.next_states[rollout.dones] = torch.randn(rollout.next_states[rollout.dones].shape, generator=stream)
    agent.high.value_norm.update(torch.tensor([3.0, 5.0, 10.0]))
    return agent, rollout_intervals(rollout, config), collector


def continuation(agent, state, observations, env, left):
    """U_h of every token in a state under the skills in force at the end of the batch ``[n + 1]``."""
    skills, high = agent.rollout.skills[-1, env].unsqueeze(0), agent.high
    state, observations = state.unsqueeze(0), observations.unsqueeze(0)
    difference = high.continuation(state, skills, torch.tensor([left]))
    assert difference.abs() > 1e-9
    return high.coordinator.values(state, observations)[0] + difference


def after(agent, env, end):
    """V_h after the interval of ``env`` that ends with step ``end``, by the rule for each way of ending ``[n + 1]``."""
    rollout, high = agent.rollout, agent.high
    if rollout.terminated[end, env]:
        return torch.zeros(rollout.n_agents + 1)
    if end == rollout.n_steps - 1:
        with torch.no_grad():
            seen = rollout.next_states[end, env], rollout.next_observations[end, env]
            return high.value_norm.denormalize(continuation(agent, *seen, env, 3))
    if rollout.truncated[end, env]:
        seen = rollout.next_states[end, env], rollout.next_observations[end, env]
        with torch.no_grad():
            return high.value_norm.denormalize(high.coordinator.values(*(part.unsqueeze(0) for part in seen))[0])
    return high.value_norm.denormalize(rollout.skill_values[end + 1, env])


def index_of(intervals, env, end):
    (index,) = ((intervals.env == env) & (intervals.end == end)).nonzero()[0]
    return index


@torch.no_grad()
def test_where_skills_are_due_at_the_barrier_the_value_is_that_of_a_choice(small, float64):
    config = small(batch_size=4 * 22)  # 4 steps of the third episode
    env = make_env(config, config.num_envs, config.seed)
    agent, collector = make_agent(config, env), Collector(env, config.seed)
    collector.collect(agent, config.rollout_steps)
    intervals = rollout_intervals(agent.rollout, config)
    assert not intervals.left.any()
    following = torch.from_numpy(agent.high._values(agent.rollout, intervals, None)[2])
    seen = collector._state.double(), collector._observations.double()
    present = agent.high.value_norm.denormalize(agent.high.coordinator.values(*seen))
    for env in range(4):
        assert torch.allclose(following[index_of(intervals, env, 21)], present[env], atol=1e-12)


def test_a_skill_that_began_in_an_earlier_batch_is_no_sample(small):
    config = small()
    env = make_env(config, config.num_envs, config.seed)
    agent, collector = make_agent(config, env), Collector(env, config.seed)
    collector.collect(agent, config.rollout_steps)
    before = agent.rollout.skills[-1].clone()
    assert agent.update(92)["Sync/ContinuedSkills"] == 0
    collector.collect(agent, config.rollout_steps)
    rollout = agent.rollout
    assert rollout.skill_ages.tolist() == [1] * 4
    assert not rollout.assigned[:3].any()
    assert torch.equal(rollout.skills[0], before)
    intervals = rollout_intervals(rollout, config)
    first = intervals.start == 0
    assert (intervals.age[first].tolist(), intervals.length[first].tolist()) == ([1] * 4, [3] * 4), "k is k"
    batch, continued = agent.high._prepare(rollout, intervals)
    assert batch.skills.shape[0] == intervals.chosen.sum() == len(intervals.env) - 4
    assert continued.left.view(23, 4)[:5, 0].tolist() == [3, 2, 1, 4, 4]
    metrics = agent.update(184)
    assert metrics["Sync/ContinuedSkills"] == 4
    assert metrics["Sync/ReplayLogProbError"] <= 1e-5


def test_skills_longer_than_a_batch(small):
    """k = 60 and batches of 23 steps: the second batch has no choice, the third has the next ones."""
    config = small(skill_steps=60, max_episode_steps=200)
    env = make_env(config, config.num_envs, config.seed)
    agent, collector = make_agent(config, env), Collector(env, config.seed)
    seen = []
    for batch in range(1, 4):
        collector.collect(agent, config.rollout_steps)
        lengths = rollout_intervals(agent.rollout, config)
        seen.append((lengths.length.tolist()[:2], lengths.age.tolist()[:2], lengths.left.tolist()[:2]))
        metrics = agent.update(92 * batch)
        assert ("Losses/Coordinator/Total" in metrics) == (batch != 2)
        assert metrics["Sync/HighLevelSamples"] == (0 if batch == 2 else 4)
        assert ("Rewards/HighLevel/K_Step_Accumulated_Mean" in metrics) == (batch == 3)
    assert seen == [([23, 23], [0, 0], [37, 37]), ([23, 23], [23, 23], [14, 14]), ([14, 9], [46, 0], [0, 51])]


@torch.no_grad()
def test_what_comes_after_an_interval(cut):
    agent, intervals, collector = cut
    rollout, high = agent.rollout, agent.high
    following = torch.from_numpy(high._values(rollout, intervals, None)[2])

    def value(state, observations):
        return high.value_norm.denormalize(high.coordinator.values(state.unsqueeze(0), observations.unsqueeze(0))[0])

    assert following[index_of(intervals, 0, 8)].tolist() == [0.0] * 3, "nothing comes after a termination"
    inside = high.value_norm.denormalize(rollout.skill_values[4, 1])
    assert torch.equal(following[index_of(intervals, 1, 3)], inside), "the next interval's start"
    cut_off = index_of(intervals, 1, 8)
    final = value(rollout.next_states[8, 1], rollout.next_observations[8, 1])
    assert torch.allclose(following[cut_off], final, atol=1e-12), "the true final state at a time limit"
    reset = value(rollout.states[9, 1], rollout.observations[9, 1])
    assert (following[cut_off] - reset).abs().max() > 1e-3, "and not the state after the reset"
    for env in range(4):
        seen = collector._state[env].double(), collector._observations[env].double()
        ongoing = high.value_norm.denormalize(continuation(agent, *seen, env, 3))
        at_barrier = following[index_of(intervals, env, 22)]
        assert torch.allclose(at_barrier, ongoing, atol=1e-12), "the current state under the current skills"
        assert (at_barrier - value(*seen)).abs().max() > 1e-3, "and not the value of choosing skills there"


def test_advantages_equal_the_sums_they_stand_for(cut):
    """A_m = Σ_j λ^(j−m)·γ^(steps between)·δ_j over the rest of the episode, step by step from the rollout."""
    agent, intervals, _ = cut
    rollout, high, config = agent.rollout, agent.high, agent.config
    gamma, lam = config.gamma_per_step, config.gae_lambda
    assert gamma**config.skill_steps == pytest.approx(0.8)
    assert "r^h = Σ_{p<k} γ^{p/k}·r_{t+p}" in type(config).__doc__, "the formula that is checked below"
    values = high.value_norm.denormalize(rollout.skill_values)
    expected, plain = [], []
    for env in range(4):
        starts = rollout.assigned[:, env].nonzero().flatten().tolist()
        ends = [start - 1 for start in starts[1:]] + [rollout.n_steps - 1]
        for first, begin in enumerate(starts):
            total = torch.zeros(3)
            for later in range(first, len(starts)):
                start, end = starts[later], ends[later]
                earned = sum(gamma ** (step - start) * rollout.rewards[step, env] for step in range(start, end + 1))
                delta = earned + gamma ** (end + 1 - start) * after(agent, env, end) - values[start, env]
                total += lam ** (later - first) * gamma ** (start - begin) * delta
                if rollout.dones[end, env]:
                    break
            expected.append(total)
            plain.append(values[begin, env])
    advantages = torch.stack(expected)
    assert sorted(set(intervals.length.tolist())) == [1, 4]
    batch, _ = high._prepare(rollout, intervals)
    computed = high.value_norm.denormalize(batch.targets) - torch.stack(plain)  # targets are A + V in new units
    assert torch.allclose(computed, advantages, atol=1e-10)
    scaled = (advantages - advantages.mean()) / advantages.std(unbiased=False)
    assert torch.allclose(batch.advantages, scaled, atol=1e-6)
    assert batch.mask is None


def test_the_continuation_critic_learns_the_return_of_every_step(cut):
    """Σ γ^p·r to the end of the skills, then V' + λ·A of the next choice, by the team's token."""
    agent, intervals, _ = cut
    rollout, high, config = agent.rollout, agent.high, agent.config
    gamma = config.gamma_per_step
    rows = list(zip(intervals.env, intervals.start, intervals.end, strict=True))
    values = [high.value_norm.denormalize(rollout.skill_values[start, env, 0]) for env, start, _ in rows]
    afters = [after(agent, env, end)[0] for env, _, end in rows]
    batch, continued = high._prepare(rollout, intervals)
    returns = high.value_norm.denormalize(batch.targets)[:, 0]  # of choices, in the order of the intervals
    targets = high.value_norm.denormalize(continued.targets).view(23, 4)
    left = continued.left.view(23, 4)
    for row, (env, start, end) in enumerate(rows):
        following = afters[row]
        if intervals.continues[row]:
            following = following + config.gae_lambda * (returns[row + 1] - values[row + 1])
        for step in range(start, end + 1):
            earned = sum(gamma ** (later - step) * rollout.rewards[later, env] for later in range(step, end + 1))
            expected = earned + gamma ** (end + 1 - step) * following
            assert targets[step, env] == pytest.approx(expected.item(), abs=1e-9)
            assert left[step, env] == config.skill_steps - (step - start)
        assert targets[start, env] == pytest.approx(returns[row].item(), abs=1e-9), "the coordinator's own target"


def test_the_continuation_critic_fits_its_targets(cut):
    agent, intervals, _ = cut
    _, continued = agent.high._prepare(agent.rollout, intervals)
    losses = [agent.high._fit_continuation(continued) for _ in range(400)]
    assert losses[-1] < 0.3 * losses[0]
    metrics = agent.update(92)
    assert 0.0 < metrics["Losses/Coordinator/Continuation"] < losses[0]


def test_skills_of_agents_that_were_never_there_do_not_count(hmasd_agent):
    rollout = hmasd_agent.rollout
    intervals = rollout_intervals(rollout, hmasd_agent.config)
    assert token_mask(rollout, intervals) is None
    rollout.present[:, 0, 1] = False
    rollout.present[6, 0, 1] = True  # present in one step of the second interval
    counts = token_mask(rollout, intervals)
    assert counts[:, :2].all()
    assert counts[:8, 2].tolist() == [False, True, False, False, False, False, False, False]
    assert counts[8:].all()


@pytest.mark.parametrize("batches", [1, 2])
def test_absent_agents_leave_the_coordinator_alone(small, batches):
    """What is stored for an agent that is not there trains nothing, also where skills continue from another batch."""
    learned = []
    for wrong in (0.0, 100.0):
        config = small(advantage_floor=0.1)
        env = make_env(config, config.num_envs, config.seed)
        agent, collector = make_agent(config, env), Collector(env, config.seed)
        for batch in range(batches):
            collector.collect(agent, config.rollout_steps)
            if batch + 1 < batches:
                agent.update(92)
        rollout = agent.rollout
        rollout.rewards += torch.linspace(-1.0, 1.0, 23 * 4).view(23, 4)
        rollout.present[:, 0, 1] = False
        rollout.skill_values[:, 0, 2] += wrong
        rollout.skill_log_probs[:, 0, 2] += wrong
        metrics = agent.high.update(rollout, rollout_intervals(rollout, agent.config))
        networks = [*agent.high.coordinator.parameters(), *agent.high.continuation.parameters()]
        learned.append([*agent.high.value_norm.state_dict().values(), *networks])
    assert all(torch.equal(a, b) for a, b in zip(*learned, strict=True))
    assert metrics["replay_error"] <= 1e-5


def test_losses_sum_over_the_tokens_that_count(collected):
    agent = collected(ppo_epochs=1)
    rollout, high = agent.rollout, agent.high
    rollout.rewards += torch.linspace(-1.0, 1.0, 23 * 4).view(23, 4)
    rollout.present[:, 0, 1] = False
    rollout.skill_values[:, 0, 0] -= 5.0  # also of the team, whose value stands for that of an absent agent
    intervals = rollout_intervals(rollout, agent.config)
    counts = token_mask(rollout, intervals)
    batch, _ = high._prepare(rollout, intervals)
    for parameter in high.coordinator.parameters():  # far from uniform, so that entropies differ
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=agent.generator)
    with torch.no_grad():
        scores = high.coordinator.evaluate(batch.states, batch.observations, batch.skills)
    losses = high._gradient_step(replace(batch, log_probs=scores.log_probs))
    n_intervals = len(intervals.env)
    assert losses["entropy"] == pytest.approx(scores.entropies[counts].sum().item() / n_intervals, rel=1e-5)
    policy = -batch.advantages[counts].sum().item() / n_intervals  # all ratios are 1
    assert losses["policy"] == pytest.approx(policy, abs=1e-5)
    assert batch.advantages[counts].mean().item() == pytest.approx(0.0, abs=1e-5)
    assert abs(batch.advantages.mean().item()) > 1e-3, "the absent agent's would count"
