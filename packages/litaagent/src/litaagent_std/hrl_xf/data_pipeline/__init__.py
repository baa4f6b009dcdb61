"""From records of tournaments to datasets for L2 and L3, without leakage.

`load_tournament_data` is the way in; `build.build_dataset` gives the dataset on disk (`dataset.OfflineData`) that
training reads. Needs numpy and pyarrow: no torch, no scml.
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
