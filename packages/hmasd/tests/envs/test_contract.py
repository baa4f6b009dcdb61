import pytest

from apexrl.envs.checker.check import check_env
from hmasd.envs.alice_and_bob import AliceAndBobEnv
from hmasd.envs.overcooked import LAYOUTS, OvercookedEnv
from hmasd.envs.uav.env import UAVEnv
from hmasd.envs.uav.world import UAVConfig


@pytest.mark.parametrize(
    "make",
    [
        lambda: AliceAndBobEnv(4, max_steps=11),
        lambda: UAVEnv(3, config=UAVConfig(scenario="coverage", max_steps=11)),
        lambda: UAVEnv(3, config=UAVConfig(scenario="relay", max_steps=11)),
    ],
    ids=["alice_and_bob", "uav_coverage", "uav_relay"],
)
def test_batched_tasks_keep_the_contract_of_multi_agent_environments(make):
    check_env(make(), num_steps=40)


@pytest.mark.parametrize("old_dynamics", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_kitchens_keep_it_too_but_nothing_in_them_is_random(layout, old_dynamics):
    env = OvercookedEnv(3, layout=layout, max_steps=11, old_dynamics=old_dynamics)
    report = check_env(env, num_steps=60, raise_on_error=False)
    assert {problem.check for problem in report.problems} == {"seeding"}
