import json
import logging
import os
import signal
import time
from dataclasses import replace

import gymnasium as gym
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from apexrl.agent.evaluation import EvaluationError
from apexrl.agent.multi_agent_runner import MultiAgentRunner
from apexrl.agent.on_policy_runner import OnPolicyRunner
from apexrl.agent.runner import StopTraining
from apexrl.algorithms.mappo import MAPPOConfig
from apexrl.algorithms.ppo import PPO, PPOConfig
from apexrl.envs.frame_stack import FrameStack
from apexrl.models import GRUCritic, GRUDiscreteActor, MLPCritic, MLPDiscreteActor
from apexrl.runs.errors import CheckpointMissingError, ConfigurationError, DivergedError, SchemaMismatchError

CFG = PPOConfig(num_steps=8, minibatch_size=16, num_epochs=2)
DOCUMENTED = {
    "train/policy_loss",
    "train/value_loss",
    "train/entropy_loss",
    "train/approx_kl",
    "train/learning_rate",
    "episode/mean_reward",
    "episode/mean_length",
    "rollout/mean_reward",
    "rollout/mean_value",
}


@pytest.fixture
def make_runner(tmp_path, make_env):
    def make(env=None, **options):
        options = {"cfg": CFG, "save_interval": 0, "show_progress": False} | options
        return OnPolicyRunner(env or make_env(), **options)

    return make


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_learn_reaches_exactly_the_asked_steps_or_the_next_rollout_and_says_which(make_runner):
    runner = make_runner()
    exact = runner.learn(total_timesteps=64)
    assert (exact.total_timesteps, exact.is_exact, exact.iterations) == (64, True, 2)
    assert "exactly" in exact.reason
    over = runner.learn(total_timesteps=1)
    assert (over.total_timesteps, over.is_exact, runner.iteration) == (96, False, 3)
    assert "65 asked, 31 more" in over.reason
    assert runner.learn(num_iterations=2).iterations == 5
    with pytest.raises(ValueError, match="exactly one"):
        runner.learn()
    with pytest.raises(ValueError, match="exactly one"):
        runner.learn(total_timesteps=10, num_iterations=1)
    with pytest.raises(ValueError, match="num_iterations=0"):
        runner.learn(num_iterations=0)


def test_metrics_bear_the_documented_names(make_runner, tmp_path):
    make_runner(log_dir=tmp_path, log_interval=1).learn(num_iterations=8)
    assert lines(tmp_path)[-1].keys() >= DOCUMENTED
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) >= DOCUMENTED | {"time/steps_per_second"}


def test_log_interval_also_logs_the_last_iteration(make_runner, tmp_path):
    make_runner(log_dir=tmp_path, log_interval=3).learn(num_iterations=7)
    assert [line["step"] for line in lines(tmp_path)] == [3 * 32, 6 * 32, 7 * 32]


def test_rollout_reward_is_the_mean_of_all_steps(make_runner, scripted_env):
    runner = make_runner(scripted_env(ends=(3, 5)))
    assert runner.collect_rollout()["rollout/mean_reward"] == pytest.approx(sum(range(1, 9)) / 8)


def test_episodes_components_and_log_are_reported_across_rollouts(make_runner, scripted_env, tmp_path):
    runner = make_runner(scripted_env(ends=(20, 24)), log_dir=tmp_path, log_interval=1)
    runner.learn(num_iterations=3)
    first, _, last = lines(tmp_path)
    assert "episode/mean_reward" not in first  # no episode has ended in 8 steps
    assert last["episode/mean_length"] == 22.0
    assert last["episode/mean_reward"] == (20 * 21 / 2 + 24 * 25 / 2) / 2
    assert last["reward_components/one"] == 22.0
    assert last["robot/height"] == sum(range(17, 25)) / 8
    assert last["env/plain"] == 1.0
    silent = make_runner(scripted_env(ends=(4, 4)), log_reward_components=False)
    assert not any(name.startswith("reward_components") for name in silent.collect_rollout())


def test_all_six_events_come_in_order_with_statistics_where_documented(make_runner):
    runner, seen = make_runner(), []
    for event in ("pre_iteration", "pre_rollout", "pre_update"):
        runner.add_callback(event, lambda r, event=event: seen.append((event, r.iteration)))
    for event in ("post_rollout", "post_update", "post_iteration"):
        runner.add_callback(event, lambda r, stats, e=event: seen.append((e, r.iteration, "train/approx_kl" in stats)))
    runner.learn(num_iterations=1)
    assert seen == [
        ("pre_iteration", 0),
        ("pre_rollout", 0),
        ("post_rollout", 0, False),
        ("pre_update", 0),
        ("post_update", 0, True),
        ("post_iteration", 1, True),
    ]


def test_callbacks_stop_training_at_the_end_of_the_iteration(make_runner):
    runner = make_runner()
    runner.add_callback("pre_update", lambda r: r.iteration < 2)
    result = runner.learn(num_iterations=9)
    assert (result.stopped_by, result.iterations, runner.agent.version) == ("callback", 3, 3)

    def enough(runner):
        raise StopTraining("that is enough")

    runner = make_runner()
    runner.add_callback("pre_iteration", enough)
    result = runner.learn(num_iterations=9)
    assert (result.reason, result.iterations) == ("that is enough", 0)


def test_errors_in_callbacks_are_raised(make_runner):
    runner = make_runner()
    runner.add_callback("post_rollout", lambda r, stats: stats["no such metric"])
    with pytest.raises(KeyError, match="no such metric"):
        runner.learn(num_iterations=1)


def test_save_interval_zero_never_saves_and_others_do(make_runner, tmp_path):
    make_runner(save_dir=tmp_path / "never", save_interval=0).learn(num_iterations=3)
    assert not (tmp_path / "never").exists()
    make_runner(save_dir=tmp_path / "some", save_interval=2).learn(num_iterations=5)
    assert sorted(path.name for path in (tmp_path / "some").glob("*.pt")) == ["checkpoint_2.pt", "checkpoint_4.pt"]
    make_runner(save_dir=tmp_path / "last", save_interval=1, keep_last=2).learn(num_iterations=5)
    assert sorted(path.name for path in (tmp_path / "last").glob("*.pt")) == ["checkpoint_4.pt", "checkpoint_5.pt"]
    with pytest.raises(ValueError, match="save_interval=-1"):
        make_runner(save_interval=-1)


def test_relative_names_resolve_under_save_dir(make_runner, tmp_path, fingerprint):
    runner = make_runner(save_dir=tmp_path / "here")
    runner.learn(num_iterations=2)
    assert runner.save_checkpoint("model.pt") == tmp_path / "here" / "model.pt"
    other = make_runner(save_dir=tmp_path / "here", cfg=CFG)
    other.load_checkpoint("model.pt")
    assert (other.iteration, other.total_timesteps) == (2, 64)
    assert fingerprint(other.agent.policy) == fingerprint(runner.agent.policy)
    other.load_checkpoint(tmp_path / "here" / "model.pt")
    with pytest.raises(CheckpointMissingError, match=r"nothing\.pt"):
        other.load_checkpoint("nothing.pt")


def test_a_checkpoint_holds_what_the_document_lists_and_loads_without_code(make_runner, tmp_path):
    runner = make_runner(log_dir=tmp_path)
    runner.learn(num_iterations=1)
    content = torch.load(runner.save_checkpoint("model.pt"), weights_only=True)
    state = content["state"]
    assert {name.split(".")[0] for name in state["agent"]["policy"]} == {"actor", "critic"}
    assert state["agent"]["optimizer"]["state"]
    assert (state["iteration"], state["total_timesteps"]) == (1, 32)
    assert content["config"]["num_steps"] == 8


def test_a_checkpoint_of_other_networks_is_refused(make_runner, tmp_path):
    runner = make_runner(save_dir=tmp_path)
    runner.save_checkpoint("model.pt")
    with pytest.raises(SchemaMismatchError, match="does not fit"):
        make_runner(save_dir=tmp_path, actor_cfg={"hidden_dims": [8]}).load_checkpoint("model.pt")


def test_another_configuration_or_number_of_environments_is_said(make_runner, make_env, tmp_path, caplog):
    runner = make_runner(save_dir=tmp_path)
    runner.learn(num_iterations=1)
    runner.save_checkpoint("model.pt")
    with caplog.at_level(logging.WARNING):
        make_runner(save_dir=tmp_path, cfg=PPOConfig(num_steps=8, gamma=0.5)).load_checkpoint("model.pt")
        assert "gamma: 0.99 then, 0.5 now" in caplog.text
        make_runner(make_env(num_envs=2), save_dir=tmp_path).load_checkpoint("model.pt")
        assert "made with 4 environments, this runner has 2" in caplog.text


def test_evaluation_leaves_training_alone(make_runner, fingerprint):
    plain, evaluated = make_runner(), make_runner(eval_interval=1, eval_episodes=3)
    plain.learn(num_iterations=4)
    evaluated.learn(num_iterations=4)
    evaluated.eval(num_episodes=5)
    assert fingerprint(plain.agent.policy) == fingerprint(evaluated.agent.policy)
    assert plain.collect_rollout() == evaluated.collect_rollout()


def test_periodic_evaluation_is_logged_and_the_best_checkpoint_stays(make_runner, tmp_path):
    runner = make_runner(
        log_dir=tmp_path, log_interval=1, eval_interval=2, eval_episodes=4, save_interval=1, keep_last=1
    )
    runner.learn(num_iterations=4)
    assert ["eval/mean_reward" in line for line in lines(tmp_path)] == [False, True, False, True]
    assert len(list((tmp_path / "checkpoints").glob("*.pt"))) in (1, 2)


def test_the_wall_clock_budget_ends_training_after_the_iteration(make_runner):
    runner = make_runner()
    runner.add_callback("post_rollout", lambda r: time.sleep(0.2) or None)
    result = runner.learn(num_iterations=1000, max_seconds=0.3)
    assert result.stopped_by == "time"
    assert result.iterations in (1, 2)


def test_a_signal_saves_and_leaves_cleanly(make_runner, tmp_path):
    runner = make_runner(save_dir=tmp_path, save_interval=0)
    runner.add_callback("pre_update", lambda r: os.kill(os.getpid(), signal.SIGTERM) if r.iteration == 2 else None)
    result = runner.learn(num_iterations=50)
    assert (result.stopped_by, result.iterations) == ("signal", 3)
    resumed = make_runner(save_dir=tmp_path)
    assert resumed.resume()
    assert resumed.iteration == 3


def test_resume_without_checkpoint_says_so(make_runner, tmp_path):
    assert not make_runner(save_dir=tmp_path / "empty").resume()


def test_constructor_forms(make_env, make_runner):
    env = make_env()
    agent = PPO(env, CFG)
    assert OnPolicyRunner(agent=agent, env=env, cfg=CFG).agent is agent
    assert OnPolicyRunner(env).agent.cfg == PPOConfig()
    with pytest.raises(ValueError, match=r"differs from agent\.cfg"):
        OnPolicyRunner(agent=agent, env=env, cfg=PPOConfig())
    with pytest.raises(ValueError, match="unknown algorithm 'sac': OnPolicyRunner knows ppo"):
        OnPolicyRunner(env, algorithm="sac")


def test_env_groups_need_factories_for_an_executor(make_env, make_runner):
    from apexrl.execution import make_executor

    runner = make_runner([lambda: make_env(num_envs=2), lambda: make_env(num_envs=2)])
    assert runner.learn(num_iterations=1).total_timesteps == 8 * 4
    with make_executor("inline") as executor, pytest.raises(ValueError, match="list of functions"):
        make_runner(make_env(), executor=executor)


def test_progress_goes_to_standard_error_as_plain_lines_without_a_terminal(make_runner, capsys):
    make_runner(show_progress=True).learn(num_iterations=2)
    out, err = capsys.readouterr()
    assert "64/64" in err
    assert out == ""


def test_the_training_environment_is_no_evaluation_environment(make_env, make_runner):
    env = make_env()
    single = gym.make("CartPole-v1")
    for train, evaluate in ((env, env), (single, single), ([single], [single]), (env, FrameStack(env, 1))):
        with pytest.raises(EvaluationError, match="eval_env is the training environment"):
            make_runner(train, eval_env=evaluate)


@pytest.mark.parametrize("env", ["CartPole-v1", [lambda: gym.make("CartPole-v1")] * 2, lambda: gym.make("CartPole-v1")])
def test_what_makes_environments_serves_training_and_evaluation(env, make_runner):
    runner = make_runner(env, eval_env=env)
    assert runner.eval(num_episodes=2)["eval/num_episodes"] == 2


def test_environments_of_another_kind_are_refused(make_runner, make_env, scripted_team):
    agent = PPO("CartPole-v1", CFG)
    with pytest.raises(TypeError, match=r"observations of env are .* The agent was made for Box.*\(4,\)"):
        make_runner("Pendulum-v1", agent=agent)
    with pytest.raises(TypeError, match="observations of eval_env are"):
        make_runner("CartPole-v1", eval_env="Pendulum-v1")
    with pytest.raises(TypeError, match="for several, use MAPPO"):
        PPO(scripted_team())


def test_an_agent_is_not_combined_with_what_it_has_already(make_env):
    env = make_env()
    agent = PPO(env, CFG)
    for name, value in {
        "algorithm": "ppo",
        "actor_class": MLPDiscreteActor,
        "critic_class": MLPCritic,
        "actor_cfg": {"hidden_dims": [8]},
        "critic_cfg": {},
        "device": "cpu",
    }.items():
        with pytest.raises(ConfigurationError, match=f"agent= and {name}="):
            OnPolicyRunner(env, agent=agent, **{name: value})
    assert OnPolicyRunner(agent=agent, env=env, cfg=CFG, log_dir="somewhere", save_dir="else").agent is agent


def test_the_algorithms_name_is_understood_in_any_case_and_a_class_is_taken(make_env):
    assert type(OnPolicyRunner(make_env(), "PPO", cfg=CFG).agent) is PPO
    assert type(OnPolicyRunner(make_env(), PPO, cfg=CFG).agent) is PPO


def test_what_stands_for_environments_is_taken(make_runner):
    assert make_runner("CartPole-v1").learner.groups.num_envs == 8
    assert make_runner(gym.make("CartPole-v1")).learner.groups.num_envs == 1
    assert make_runner([lambda: gym.make("CartPole-v1")] * 3).learner.groups.num_envs == 3
    with pytest.raises(TypeError, match="env is 3"):
        make_runner(3)


def test_agents_by_number_find_their_runner(scripted_team, make_env):
    with pytest.raises(TypeError, match="Use MultiAgentRunner"):
        OnPolicyRunner(scripted_team())
    with pytest.raises(TypeError, match="Use OnPolicyRunner"):
        MultiAgentRunner(make_env())


def test_which_learning_rate_wins_is_said_and_can_be_chosen(make_runner, tmp_path, caplog):
    make_runner(save_dir=tmp_path).save_checkpoint("model.pt")
    other = make_runner(save_dir=tmp_path, cfg=replace(CFG, learning_rate=0.5))
    with caplog.at_level(logging.WARNING):
        other.load_checkpoint("model.pt")
    assert "learning_rate: 0.0003 then, 0.5 now" in caplog.text
    assert "the learning rate is the checkpoint's (reset_learning_rate=True changes it)" in caplog.text
    assert other.agent.learning_rate == other.agent.optimizer.param_groups[0]["lr"] == CFG.learning_rate
    other.load_checkpoint("model.pt", reset_learning_rate=True)
    assert other.agent.learning_rate == other.agent.optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize("load", ["agent", "runner"])
def test_a_loaded_agent_can_learn_with_another_rate(load, make_runner, make_env, tmp_path, caplog):
    path, cfg = make_runner(save_dir=tmp_path).save_checkpoint("model.pt"), replace(CFG, learning_rate=0.5)

    def rate(**options):
        caplog.clear()
        if load == "agent":
            return PPO.load(path, cfg=cfg, **options).learning_rate
        return OnPolicyRunner.from_checkpoint(path, make_env(), cfg=cfg, **options).agent.learning_rate

    assert rate() == CFG.learning_rate
    assert caplog.text.count("reset_learning_rate=True changes it") == 1
    assert rate(reset_learning_rate=True) == 0.5
    assert "changes it" not in caplog.text


def test_options_that_a_checkpoint_cannot_hold_are_given_again(make_runner, make_env, tmp_path):
    class Swish(torch.nn.SiLU):
        pass

    networks = {"actor_cfg": {"activation": Swish}, "critic_cfg": {"activation": Swish}}
    path = make_runner(save_dir=tmp_path, **networks).save_checkpoint("model.pt")
    with pytest.raises(ConfigurationError, match="Pass actor_cfg"):
        OnPolicyRunner.from_checkpoint(path, make_env())
    runner = OnPolicyRunner.from_checkpoint(path, make_env(), **networks)
    assert any(isinstance(layer, Swish) for layer in runner.agent.policy.actor.net)


def test_an_activation_given_as_a_class_is_in_the_checkpoint(make_runner, tmp_path):
    network = {"net_arch": [8], "activation_fn": torch.nn.ReLU}
    agent = PPO.load(make_runner(save_dir=tmp_path, actor_cfg=network).save_checkpoint("model.pt"))
    assert [type(layer).__name__ for layer in agent.policy.actor.net] == ["Linear", "ReLU", "Linear"]


def test_an_agent_of_other_shapes_is_refused_in_words(make_runner, tmp_path):
    path = make_runner(save_dir=tmp_path).save_checkpoint("model.pt")
    with pytest.raises(SchemaMismatchError, match=r"model\.pt' does not fit this agent: .*size mismatch"):
        PPO.load(path, env="Pendulum-v1")


def test_a_checkpoint_is_found_by_its_path_too(make_runner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_runner(save_dir="ck").save_checkpoint("model.pt")
    runner = make_runner(save_dir="ck")
    runner.load_checkpoint("model.pt")
    runner.load_checkpoint("ck/model.pt")
    with pytest.raises(CheckpointMissingError, match=r"ck/none\.pt"):
        runner.load_checkpoint("none.pt")


def test_success_rates_are_reported(make_runner, scripted_env):
    env = scripted_env(ends=(3, 4))
    original = env.step

    def step(actions):
        obs, rewards, dones, extras = original(actions)
        return obs, rewards, dones, extras | ({"success": torch.tensor([1.0, 0.0])} if dones.any() else {})

    env.step = step
    runner = make_runner(env)
    stats = runner.collect_rollout()
    assert stats["episode/success_rate"] == 0.5  # two episodes of each environment
    assert runner.eval(4)["eval/success_rate"] == 0.5


# -- numbers that are none


def poison(env, name, at):
    """Let an environment return NaN in a step of its life."""
    original, count = env.step, [0]

    def step(actions):
        obs, rewards, dones, extras = original(actions)
        count[0] += 1
        if count[0] == at:
            bad = {"rewards": rewards, "observations": obs}[name]
            bad[-1] = float("nan")
        return obs, rewards, dones, extras

    env.step = step
    return env


@pytest.mark.parametrize("what", ["rewards", "observations"])
@pytest.mark.parametrize("kind", ["ppo", "recurrent", "mappo"])
def test_nan_stops_with_its_place_and_the_last_good_checkpoint_stays(
    what, kind, make_env, scripted_team, tmp_path, fingerprint
):
    options = {"save_dir": tmp_path, "save_interval": 1, "show_progress": False}

    def make():
        if kind == "mappo":
            return MultiAgentRunner(scripted_team(), cfg=MAPPOConfig(num_steps=8, minibatch_size=16), **options)
        networks = {} if kind == "ppo" else {"actor_class": GRUDiscreteActor, "critic_class": GRUCritic}
        cfg = replace(CFG, sequence_length=8)
        return OnPolicyRunner(make_env(), cfg=cfg, **networks, **options)

    runner = make()
    poison(runner.learner.groups.groups[0].env, what, at=20)  # in the third rollout of 8 steps
    seen = []
    runner.add_callback("post_iteration", lambda r: seen.append(fingerprint(r.agent.policy)))
    last = 3 if kind != "mappo" else 1
    step = 3 if what == "rewards" else 4  # an observation is the input of the step after it
    with pytest.raises(DivergedError, match=f"{what} of environment {last} at step {step} of the rollout"):
        runner.learn(num_iterations=9)
    assert (runner.iteration, runner.agent.version) == (2, 2)
    assert fingerprint(runner.agent.policy) == seen[-1]  # the update before is the last thing that happened
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == ["checkpoint_1.pt", "checkpoint_2.pt"]
    with pytest.raises(DivergedError, match="nothing is saved"):
        runner.save_checkpoint("spoilt.pt")
    again = make()
    assert again.resume()
    assert (again.iteration, fingerprint(again.agent.policy)) == (2, seen[-1])
    again.learn(num_iterations=1)


def test_weights_that_diverge_are_noticed_before_they_are_saved(make_runner, tmp_path):
    runner = make_runner(save_dir=tmp_path, save_interval=1, cfg=replace(CFG, learning_rate=1e38, max_grad_norm=None))
    with pytest.raises(DivergedError):
        runner.learn(num_iterations=5)
    assert list(tmp_path.glob("*.pt")) == []
