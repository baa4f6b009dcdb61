# %% [markdown]
# # Look at a negotiation
#
# Records hold every offer of every negotiation. This notebook collects two tiny worlds and follows one negotiation;
# `lita serve` shows the same in the browser.

# %%
import tempfile
from pathlib import Path

from litaagent_std import TournamentConfig, open_records, run_tournament

folder = Path(tempfile.mkdtemp()) / "records"
config = TournamentConfig(
    competitors=("lita", "RandomStd"),
    configs=1,
    runs=1,
    steps=6,
    levels=2,
    csv=False,
    quiet=True,
    executor="inline",
    output_dir=folder,
)
print(run_tournament(config).results.standings[0])

# %% [markdown]
# `table` reads a whole table of all worlds as Arrow; here, how negotiations ended.

# %%
records = open_records(folder)
negotiations = records.table("negotiations")
print(negotiations.num_rows, "negotiations;", negotiations.column_names[:12])

# %%
key, world = next(iter(records.worlds()))
rows = world.tables["negotiations"].select(["day", "negotiation"]).to_pylist()
print(world.negotiation(rows[-1]["day"], rows[-1]["negotiation"]))
