"""Settings of ./start_sync_training.sh: plain values, read and never executed.

`python -m hmasd settings` lists every name with its meaning; the paper's symbols (n_Z, n_z, k, lambda_D, lambda_d,
lambda_h, lambda_l) are accepted too.
"""

# task
task = "uav_coverage"
n_agents = 10
max_episode_steps = 100
seed = 0
total_steps = 4000000

# synchronous batch: one update after batch_size environment steps, batch_size / num_envs from each environment
batch_size = 1024
num_envs = 32

# skills
n_Z = 3  # noqa: N816 - the paper's symbol
n_z = 3
k = 10
lambda_e = 1.0
lambda_D = 0.1  # noqa: N816 - the paper's symbol
lambda_d = 0.5
lambda_h = 0.001
lambda_l = 0.01

# networks and PPO
hidden_size = 64
lr = 1e-4
lr_discriminator = 1e-4
gamma = 0.99
gae_lambda = 0.95
clip_range = 0.2
ppo_epochs = 15
sequence_length = 16

# evaluation and checkpoints, in environment steps
eval_interval = 160000
eval_episodes = 32
checkpoint_interval = 320000
