import math

import pytest
import torch

from apexrl.algorithms.losses import ReplayMismatchError
from hmasd.learning.high_level import rollout_intervals


def test_the_replay_audit_holds_on_both_levels_in_float32(hmasd_agent):
    metrics = hmasd_agent.update(92)
    assert 0.0 <= metrics["Sync/ReplayLogProbError"] <= 1e-5


def test_the_replay_audit_holds_to_1e_10_in_float64(float64, collected):
    assert collected().update(92)["Sync/ReplayLogProbError"] <= 1e-10


def test_the_audit_finds_an_overwritten_observation(hmasd_agent):
    hmasd_agent.rollout.observations[5, 1, 0] += 1.0
    with pytest.raises(ReplayMismatchError, match="discoverer"):
        hmasd_agent.update(92)


def test_the_audit_finds_a_wrong_skill(hmasd_agent):
    rollout = hmasd_agent.rollout
    rollout.skills[0, 0, 0] = (rollout.skills[0, 0, 0] + 1) % 3
    hmasd_agent.low._audit = lambda batch: 0.0
    with pytest.raises(ReplayMismatchError, match="coordinator"):
        hmasd_agent.update(92)


def test_an_agent_that_has_left_is_paid_by_no_discriminator(hmasd_agent):
    rollout = hmasd_agent.rollout
    rollout.present[2:4, 0, 1] = False  # it leaves in the middle of the first skill
    paid = hmasd_agent.discriminators.rewards(rollout).agents
    assert (paid[~rollout.present] == 0.0).all()
    assert (paid[rollout.present] < 0.0).all()


def test_limited_discriminators_change_when_they_learn_and_at_no_other_time(collected):
    agent = collected(discriminator_lipschitz=2.0)
    networks = agent.discriminators.networks

    def state():
        return {name: value.clone() for name, value in networks.state_dict().items()}

    before = state()
    first, second = agent.discriminators.rewards(agent.rollout), agent.discriminators.rewards(agent.rollout)
    assert torch.equal(first.agents, second.agents)
    agent.discriminators.update(agent.rollout, learn=False)
    assert all(torch.equal(value, before[name]) for name, value in state().items())
    agent.discriminators.update(agent.rollout)
    assert any(not torch.equal(value, before[name]) for name, value in state().items())


def test_skills_begin_with_an_episode_even_if_others_have_steps_left(collected):
    agent = collected()
    agent.update(92)
    agent.clock.assign(agent.clock.due() | True)
    seen = agent.rollout
    inputs = seen.observations[0].clone(), seen.states[0].clone(), seen.present[0].clone()
    starts = torch.tensor([True, False, False, True])
    agent.act(*inputs, starts)
    assert seen.assigned[0].tolist() == starts.tolist()


def test_the_expected_number_of_high_level_samples(hmasd_agent):
    # per environment: 9 + 9 + 5 steps with k = 4 give 3 + 3 + 2 intervals
    intervals = rollout_intervals(hmasd_agent.rollout, hmasd_agent.config)
    assert intervals.length.tolist() == [4, 4, 1, 4, 4, 1, 4, 1] * 4
    assert hmasd_agent.update(92)["Sync/HighLevelSamples"] == 32


def test_skills_change_only_where_they_are_assigned(hmasd_agent):
    rollout = hmasd_agent.rollout
    changed = (rollout.skills[1:] != rollout.skills[:-1]).any(dim=-1)
    assert changed.any()
    assert not (changed & ~rollout.assigned[1:]).any()


def test_skills_stay_in_force_across_the_barrier_and_the_version_rises(hmasd_agent):
    before = hmasd_agent.skills.clone()
    hmasd_agent.update(92)
    assert hmasd_agent.version == 1
    assert hmasd_agent.clock.age.tolist() == [1] * 4
    assert not hmasd_agent.clock.due().any()
    assert torch.equal(hmasd_agent.skills, before)
    assert hmasd_agent.rollout.filled == 0


def test_low_level_rewards_follow_the_formula(collected):
    agent = collected(lambda_e=2.0, lambda_team=0.3, lambda_agent=0.7)
    rollout = agent.rollout
    parts = agent.discriminators.rewards(rollout)
    team, each = agent.discriminators.networks.logits(
        rollout.next_states, rollout.next_observations, rollout.skills[..., 0]
    )
    step, env, i = 6, 2, 1
    expected = 0.3 * torch.log_softmax(team[step, env], -1)[rollout.skills[step, env, 0]]
    assert parts.team[step, env] == pytest.approx(expected.item(), abs=1e-6)
    expected = 0.7 * torch.log_softmax(each[step, env, i], -1)[rollout.skills[step, env, 1 + i]]
    assert parts.agents[step, env, i] == pytest.approx(expected.item(), abs=1e-6)


def test_centred_rewards_pay_nothing_for_chance(collected):
    agent = collected(center_rewards=True)
    for network in (agent.discriminators.networks.team, agent.discriminators.networks.agent):
        for parameter in network.parameters():
            parameter.data.zero_()
    parts = agent.discriminators.rewards(agent.rollout)
    assert parts.team.abs().max() < 1e-6
    assert parts.agents.abs().max() < 1e-6


def test_adaptive_weights_stop_paying_for_solved_discrimination(collected):
    agent = collected(adaptive_lambda=True, lambda_team=0.4, lambda_agent=0.8, n_agent_skills=4)
    agent.discriminators.accuracy = {"team": 1.0, "agent": 0.25}
    weights = agent.discriminators._weights()
    assert weights["team"] == pytest.approx(0.0)
    assert weights["agent"] == pytest.approx(0.8)


def test_warm_up_draws_uniformly_and_leaves_the_coordinator_alone(collected):
    agent = collected(warmup_steps=100)
    rollout = agent.rollout
    assert rollout.skill_log_probs[0, :, 0].tolist() == pytest.approx([-math.log(3)] * 4)
    before = [parameter.clone() for parameter in agent.high.coordinator.parameters()]
    assert "Losses/Coordinator/Total" not in agent.update(92)
    assert all(torch.equal(a, b) for a, b in zip(before, agent.high.coordinator.parameters(), strict=True))


def test_batches_without_reward_leave_a_coordinator_with_an_advantage_floor_alone(collected):
    largest = []
    for floor in (1e-8, 10.0):
        agent = collected(advantage_floor=floor)
        assert not agent.rollout.rewards.any()
        batch = agent.high._prepare(agent.rollout, rollout_intervals(agent.rollout, agent.config))[0]
        largest.append(batch.advantages.abs().max().item())
    assert largest[0] > 1.0
    assert largest[1] < 0.2


@pytest.mark.parametrize(
    ("ablation", "check"),
    [
        ("no_team", lambda a: a.rollout.skills[..., 0].max() == 0 and a.codes.n_actor == 3),
        ("no_indi", lambda a: a.rollout.skills[..., 1:].max() == 0 and a.codes.n_actor == 3),
        ("no_high", lambda a: "Losses/Coordinator/Total" not in a.update(92)),
        ("no_ex_rew", lambda a: a.update(92)["Rewards/LowLevel/Extrinsic_Mean"] == 0.0),
        (
            "no_in_rew",
            lambda a: (
                (m := a.update(92))["Rewards/LowLevel/TeamDiscriminator_Mean"] == 0.0
                and m["Rewards/LowLevel/IndividualDiscriminator_Mean"] == 0.0
            ),
        ),
    ],
)
def test_ablations_leave_their_part_out(collected, ablation, check):
    agent = collected(ablation=ablation)
    agent.rollout.rewards += 1.0
    assert check(agent)


def test_without_individual_skills_agents_follow_the_teams(collected):
    agent = collected(ablation="no_indi")
    codes = agent.codes.actor(torch.tensor([[2, 0, 0]]))
    assert codes.tolist() == [[[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]]


def test_a_critic_that_sees_all_skills_has_a_value_per_agent(collected):
    agent = collected(critic_sees="all_skills")
    assert agent.codes.critic(torch.tensor([[1, 0, 2]])).tolist() == [[0, 1, 0, 1, 0, 0, 0, 0, 1]]
    assert agent.low.networks.to_value.out_features == 2
    assert agent.update(92)["Sync/ReplayLogProbError"] <= 1e-5


def learned(agent):
    """Parameters of coordinator and discriminators after an update; those of limited layers under their plain names."""
    metrics = agent.update(92)
    assert 0.0 <= metrics["Sync/ReplayLogProbError"] <= 1e-5
    assert all(math.isfinite(value) for value in metrics.values())
    networks = agent.high.coordinator, agent.discriminators.networks
    return {
        name.replace("parametrizations.weight.original", "weight"): parameter.detach().clone()
        for network in networks
        for name, parameter in network.named_parameters()
    }


@pytest.mark.parametrize(
    "changes",
    [{"skill_floor": 0.3}, {"discriminator_decay": 0.1}, {"discriminator_lipschitz": 2.0}],
    ids=lambda changes: next(iter(changes)),
)
def test_options_change_what_is_learned_and_the_replay_audit_holds(collected, changes):
    plain, again, changed = learned(collected()), learned(collected()), learned(collected(**changes))
    assert all(torch.equal(plain[name], again[name]) for name in plain), "nothing else makes a difference"
    assert {name: value.shape for name, value in plain.items()} == {name: v.shape for name, v in changed.items()}
    assert any(not torch.equal(plain[name], changed[name]) for name in plain)


def test_every_block_of_the_coordinator_learns_and_the_replay_audit_holds(collected):
    agent = collected(transformer_blocks=2)
    before = {name: parameter.detach().clone() for name, parameter in agent.high.coordinator.named_parameters()}
    after = learned(agent)
    changed = {name for name, value in before.items() if not torch.equal(value, after[name])}
    for block in ("encoder.0.", "encoder.1.", "decoder.0.", "decoder.1."):
        assert any(name.startswith(block) for name in changed), block


@pytest.mark.parametrize("num_minibatches", [1, 3])
def test_totals_are_the_losses_that_are_minimised(collected, num_minibatches):
    agent = collected(entropy_high=0.3, entropy_low=0.2, value_coef=0.7, num_minibatches=num_minibatches)
    agent.rollout.rewards += torch.rand(agent.rollout.rewards.shape)
    metrics = agent.update(92)
    for part, entropy_coef in (("Coordinator", 0.3), ("Discoverer", 0.2)):
        policy, value = metrics[f"Losses/{part}/Policy"], metrics[f"Losses/{part}/Value"]
        entropy = metrics[f"Policy/{part}/Entropy"]
        assert metrics[f"Losses/{part}/Total"] == pytest.approx(policy - entropy_coef * entropy + 0.7 * value, abs=1e-5)
        assert abs(entropy_coef * entropy + 0.3 * value) > 1e-2, "policy + value alone is another number"


def test_skill_usage_adds_up_to_one(hmasd_agent):
    metrics = hmasd_agent.update(92)
    assert sum(metrics[f"Skills/Usage/Team_{i}"] for i in range(3)) == pytest.approx(1.0)
    assert sum(metrics[f"Skills/Usage/Individual_{i}"] for i in range(3)) == pytest.approx(1.0)


def test_absent_agents_count_neither_for_accuracy_nor_for_usage_and_rewards(collected):
    agent = collected()
    rollout, networks = agent.rollout, agent.discriminators.networks
    rollout.present[:, 0, 1] = False
    rollout.skills[..., 2] = 1
    rollout.skills[:, 0, 2] = 0  # of the absent agent
    agent.high.update = lambda *_: {}  # the audits would find the changed skills
    agent.low._audit = lambda _: 0.0
    _, logits = networks.logits(rollout.next_states, rollout.next_observations, rollout.skills[..., 0])
    right = (logits.argmax(-1) == rollout.skills[..., 1:]).double()
    expected = right[rollout.present].mean().item()
    paid = agent.discriminators.rewards(rollout).agents
    intervals = rollout_intervals(rollout, agent.config)
    chosen = rollout.skills[intervals.start, intervals.env]
    first = chosen[:, 1].tolist()
    second = [1] * int((intervals.env != 0).sum())
    metrics = agent.update(92)
    assert metrics["Skills/IndividualDiscriminatorAccuracy"] == pytest.approx(expected)
    assert expected != pytest.approx(right.mean().item()), "with the absent agent it would be another number"
    mean = metrics["Rewards/LowLevel/IndividualDiscriminator_Mean"]
    assert mean == pytest.approx(paid[rollout.present].mean().item())
    assert metrics["Skills/Usage/Individual_0"] == pytest.approx((first + second).count(0) / len(first + second))


def test_state_is_only_given_at_the_barrier(hmasd_agent):
    with pytest.raises(RuntimeError, match="23 of 23 steps"):
        hmasd_agent.state_dict()


def test_discriminators_learn_to_recognise_skills(collected):
    agent = collected(batch_size=4 * 100, discriminator_epochs=60)
    rollout = agent.rollout
    rollout.next_observations[..., 0] = rollout.skills[..., 1:].float()
    rollout.next_states[..., 0] = rollout.skills[..., 0].float()
    first = agent.discriminators.update(rollout)
    second = agent.discriminators.update(rollout)
    assert second["team_accuracy"] > 0.95 > first["team_accuracy"]
    assert second["agent_accuracy"] > 0.95 > first["agent_accuracy"]
