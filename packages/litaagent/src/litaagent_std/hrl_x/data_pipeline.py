"""Samples from scml's negotiation tables; the code is that of `hrl_xf.data_pipeline`."""

from litaagent_std.hrl_xf.data_pipeline import (
    MacroSample,
    MicroSample,
    build_macro_dataset,
    build_micro_dataset,
    load_negotiation_csv,
)

__all__ = ["MacroSample", "MicroSample", "build_macro_dataset", "build_micro_dataset", "load_negotiation_csv"]
