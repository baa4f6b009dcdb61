# %% [markdown]
# # Your first agent in the league
#
# An agent is a class of scml. This one is ours with another limit on risk; it plays a world beside scml's default
# agents, and is compared with ours in the same seats.

# %%
from litaagent_std import LitaAgentHRL, official_setup, run_world


class Careful(LitaAgentHRL):
    """LitaAgentHRL that never sells more than its input covers."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"parameters": {"risk_budget": 0.0}, **kwargs})


# %% [markdown]
# A world is a pure function of its seed. `official_setup` draws one as the league does; here it is short.

# %%
setup = official_setup(seed=1, competitors=[Careful], n_days=10, n_levels=2)
outcome = run_world(setup)
for agent, (name, score) in zip(setup.agents, outcome.scores.items(), strict=True):
    print(f"{name:8} {score:6.3f}  {agent.path.rsplit('.', 1)[1]}")

# %% [markdown]
# The same world, the same seat, the same randomness, another agent: the difference is due to the agent alone. One world
# says little; `lita arena` plays them until a sequential test decides.

# %%
seat = next(index for index, agent in enumerate(setup.agents) if agent.competitor)
ours = run_world(official_setup(seed=1, competitors=[LitaAgentHRL], n_days=10, n_levels=2))
careful, plain = (list(world.scores.values())[seat] for world in (outcome, ours))
print(f"careful {careful:.3f}, ours {plain:.3f}, difference {careful - plain:+.3f}")
