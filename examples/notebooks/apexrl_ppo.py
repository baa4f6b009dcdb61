# %% [markdown]
# # PPO with apexrl
#
# A vectorised environment, a runner, a run that can be killed and resumed.

# %%
import tempfile

import gymnasium

from apexrl import GymVecEnv, OnPolicyRunner, PPOConfig, check_env

env = GymVecEnv([lambda: gymnasium.make("CartPole-v1")] * 8)
check_env(env)

# %%
folder = tempfile.mkdtemp()
runner = OnPolicyRunner(env=env, cfg=PPOConfig(num_steps=64, seed=1), log_dir=folder, save_interval=4)
print("before", runner.eval(num_episodes=10)["eval/mean_reward"])
print(runner.learn(total_timesteps=10_240).reason)
print("after", runner.eval(num_episodes=10)["eval/mean_reward"])

# %% [markdown]
# A new runner on the same folder resumes where the first one stopped, to the last bit.

# %%
again = OnPolicyRunner(
    env=GymVecEnv([lambda: gymnasium.make("CartPole-v1")] * 8), cfg=PPOConfig(num_steps=64, seed=1), log_dir=folder
)
print(again.resume(), again.total_timesteps)
