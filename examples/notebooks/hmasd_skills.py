# %% [markdown]
# # Skills with hmasd
#
# Alice and Bob must press two buttons at the same time: a reward that single actions hardly find. HMASD learns skills
# for the team and for each agent. This run is far too short to learn; the paper's makes 3,000,000 steps.

# %%
from hmasd import evaluate, preset, train

config = preset("paper", num_envs=4, batch_size=400, total_steps=800, ppo_epochs=1, eval_episodes=4)
trainer = train(config)
print("policy version", trainer.agent.version, "after", trainer.env_steps, "steps")

# %%
result = evaluate(trainer.agent, config, trainer.env_steps)
for name, value in result.metrics(config.task).items():
    print(f"{name:28} {value:.3f}")
