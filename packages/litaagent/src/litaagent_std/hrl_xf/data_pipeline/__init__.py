"""From records of tournaments to datasets for L2 and L3, without leakage.

Doors: `load_tournament_data` gives samples, `build_dataset` the dataset on disk (`OfflineData`) that training reads,
`load_negotiation_csv` reads scml's own tables. Inside:

===============  =====================================================================================
``options``      `DatasetOptions`: which samples a dataset holds; ``errors``: what can go wrong
``selection``    worlds and factories that match the options; ``split``: train, val and test
``extraction/``  from the record of one world to arrays: observations, features, labels, baseline
``shards``       one file per world, and the arrays gathered from them; ``build``: the whole way
``dataset``      `OfflineData`, memory-mapped; ``stats``: its figures; ``export``: Parquet with a card
``samples``      samples one by one; ``storage``: saving and loading them
``tables``       samples from scml's negotiation tables
===============  =====================================================================================

Needs numpy and pyarrow: no torch, no scml.
"""

from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.hrl_xf.data_pipeline.samples import (
    MacroDataset,
    MacroSample,
    MicroDataset,
    MicroSample,
    load_tournament_data,
)
from litaagent_std.hrl_xf.data_pipeline.storage import load_samples, save_samples
from litaagent_std.hrl_xf.data_pipeline.tables import build_macro_dataset, build_micro_dataset, load_negotiation_csv

__all__ = [
    "DatasetOptions",
    "MacroDataset",
    "MacroSample",
    "MicroDataset",
    "MicroSample",
    "OfflineData",
    "build_dataset",
    "build_macro_dataset",
    "build_micro_dataset",
    "load_negotiation_csv",
    "load_samples",
    "load_tournament_data",
    "save_samples",
]
