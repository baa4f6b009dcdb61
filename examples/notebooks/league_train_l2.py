# %% [markdown]
# # Train an L2 from records
#
# Collect, build a dataset of one agent's days, clone its goals, and play with the result. The sizes are tiny: it shows
# the steps, not a strong agent.

# %%
import tempfile
from pathlib import Path

from litaagent_std import TournamentConfig, official_setup, run_tournament, run_world
from litaagent_std.hrl_xf.data_pipeline import DatasetOptions, build_dataset

folder = Path(tempfile.mkdtemp())
config = TournamentConfig(
    competitors=("GreedyStd", "RandomStd"),
    configs=4,
    runs=1,
    steps=6,
    levels=2,
    csv=False,
    quiet=True,
    executor="inline",
    output_dir=folder / "records",
)
run_tournament(config)
options = DatasetOptions(agent_name="Greedy", ratios=(0.5, 0.25, 0.25))
data = build_dataset(folder / "records", folder / "dataset", options, num_workers=1)
print(data.manifest["counts"])

# %% [markdown]
# The trainer takes the networks of the layers; None leaves a layer out. Weights for play are numpy files.

# %%
from litaagent_std.hrl_xf.l2_manager import HorizonManagerPPO
from litaagent_std.hrl_xf.training import HRLXFTrainer, TrainConfig

trainer = HRLXFTrainer(HorizonManagerPPO(40), None, None, TrainConfig(output_dir=folder / "run", l2_epochs=2))
trainer.train_l2(data)
print(trainer.save_all("bc"))

# %%
from litaagent_std import AgentSpec

learned = {"l2": "learned", "weights": str(folder / "run" / "weights")}
agent = AgentSpec("litaagent_std.agents.hrl.LitaAgentHRL", learned, competitor=True)
print(run_world(official_setup(seed=2, competitors=[agent], n_days=8, n_levels=2)).scores)
