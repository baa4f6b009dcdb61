from dataclasses import fields

import pytest
import torch

from hmasd.learning.low_level import LowLevelInputs, _select_rows, minibatches
from hmasd.networks.discoverer import concat_features


def task_of(agent, rewards=None):
    rollout = agent.rollout
    return LowLevelInputs(
        actor_codes=agent.codes.actor(rollout.skills),
        critic_codes=agent.codes.critic(rollout.skills),
        rewards=torch.zeros_like(rollout.log_probs) if rewards is None else rewards,
        ends=rollout.interval_ends(),
    )


def test_one_pass_of_the_critic_equals_going_step_by_step(float64, collected):
    agent = collected()
    rollout, low = agent.rollout, agent.low
    inputs = concat_features(rollout.states, task_of(agent).critic_codes)
    memory = torch.randn(4, 16)
    rollout.episode_starts[0] = torch.tensor([False, True, False, True])
    low.critic_memory = memory.clone()
    with torch.no_grad():
        values, before, after = low._run_critic(rollout, inputs)
        for step in range(rollout.n_steps):
            memory = torch.where(rollout.episode_starts[step].unsqueeze(-1), 0.0, memory)
            assert (before[step] - memory).abs().max() < 1e-12
            value, memories = low.networks.values(inputs[step].unsqueeze(0), memory)
            memory = memories[0]
            assert (values[step] - value[0]).abs().max() < 1e-12
            assert (after[step] - memory).abs().max() < 1e-12


def test_values_after_a_step_are_zero_at_termination_and_bootstrapped_elsewhere(float64, collected):
    agent = collected()
    rollout, low = agent.rollout, agent.low
    rollout.truncated[8, 0], rollout.terminated[8, 0] = False, True
    task = task_of(agent)
    inputs = concat_features(rollout.states, task.critic_codes)
    with torch.no_grad():
        values, _, after = low._run_critic(rollout, inputs)
        following = low._next_values(rollout, task, values, after)
        assert following[8, 0].item() == 0.0
        # inside a skill: the next value; at a skill's end: the next state under the old skill, whatever follows
        assert following[0, 0] == pytest.approx(values[1, 0].item(), abs=1e-12)
        for step, env in ((3, 0), (8, 1), (22, 2)):
            seen = concat_features(rollout.next_states[step, env], task.critic_codes[step, env])
            expected, _ = low.networks.values(seen.view(1, 1, -1), after[step, env].unsqueeze(0))
            assert following[step, env] == pytest.approx(expected.item(), abs=1e-12)


PER_SEQUENCE = {"critic_memory"}
PER_SEQUENCE_AND_AGENT = {"actor_memory"}
PER_STEP = {"critic_inputs", "values", "targets", "critic_mask"}
PER_STEP_AND_AGENT = {"actor_inputs", "action_mask", "actions", "log_probs", "advantages", "mask"}


def test_minibatches_keep_agents_with_their_environment(collected):
    agent = collected(algorithm="mappo", task="uav_coverage", n_agents=3)
    rollout = agent.rollout
    no_codes = torch.zeros(23, 4, 3, 0), torch.zeros(23, 4, 0)
    rewards = torch.zeros(23, 4, 3)
    task = LowLevelInputs(actor_codes=no_codes[0], critic_codes=no_codes[1], rewards=rewards, ends=rollout.dones)
    rollout.action_masks = torch.ones(23, 4, 3, 5, dtype=torch.bool)
    plain = agent.low._prepare(rollout, task)
    names = {field.name for field in fields(plain)}
    assert names == PER_SEQUENCE | PER_SEQUENCE_AND_AGENT | PER_STEP | PER_STEP_AND_AGENT
    # every entry unlike all others, so that nothing can be swapped unseen
    numbers = {name: torch.arange(getattr(plain, name).numel()).view(getattr(plain, name).shape) for name in names}
    batch = type(plain)(**numbers)
    n_sequences = plain.critic_memory.shape[0]
    rows = torch.tensor([n_sequences - 1, 0, 3])
    taken = _select_rows(batch, rows, 3)
    for position, row in enumerate(rows.tolist()):
        for name in PER_SEQUENCE:
            assert torch.equal(getattr(taken, name)[position], numbers[name][row]), name
        for name in PER_STEP:
            assert torch.equal(getattr(taken, name)[:, position], numbers[name][:, row]), name
        for name in PER_SEQUENCE_AND_AGENT:
            expected = numbers[name].unflatten(0, (n_sequences, 3))[row]
            assert torch.equal(getattr(taken, name).unflatten(0, (3, 3))[position], expected), name
        for name in PER_STEP_AND_AGENT:
            expected = numbers[name].unflatten(1, (n_sequences, 3))[:, row]
            assert torch.equal(getattr(taken, name).unflatten(1, (3, 3))[:, position], expected), name
    assert _select_rows(batch, None, 3) is batch


def test_minibatches_hold_every_row_once_and_a_single_one_draws_nothing():
    stream = torch.Generator().manual_seed(0)
    before = stream.get_state()
    assert minibatches(10, 1, stream) == [None]
    assert torch.equal(stream.get_state(), before)
    parts = minibatches(10, 3, stream)
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sorted(torch.cat(parts).tolist()) == list(range(10))
    assert torch.cat(parts).tolist() != list(range(10))


def test_absent_agents_leave_values_and_networks_alone(collected):
    """Whatever the rewards of an agent that is never there, statistics of returns and networks stay the same."""
    learned = []
    for reward in (0.0, 1000.0):
        agent = collected(critic_sees="all_skills")
        agent.rollout.present[:, 0, 1] = False
        rewards = torch.linspace(-1.0, 1.0, 23 * 4 * 2).view(23, 4, 2)
        rewards[:, 0, 1] = reward
        agent.low.update(agent.rollout, task_of(agent, rewards), agent.generator)
        learned.append([*agent.low.value_norm.state_dict().values(), *agent.low.networks.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*learned, strict=True))


def test_the_update_raises_what_pays(collected):
    """Actions that are rewarded become more probable, those that cost less probable."""
    agent = collected(entropy_low=0.0, ppo_epochs=10, gamma=0.0, batch_size=4 * 100)
    rollout = agent.rollout
    rewards = (rollout.actions == 2).double().float()
    batch = agent.low._prepare(rollout, task_of(agent, rewards))

    def probability():
        with torch.no_grad():
            distribution, _ = agent.low.networks.policy(batch.actor_inputs, batch.actor_memory)
            return torch.softmax(distribution.logits, -1).mean(dim=(0, 1))

    before = probability()
    agent.low.update(rollout, task_of(agent, rewards), agent.generator)
    after = probability()
    assert after[2] > before[2] + 0.05
    assert (after[[0, 1, 3, 4]] < before[[0, 1, 3, 4]]).all()
