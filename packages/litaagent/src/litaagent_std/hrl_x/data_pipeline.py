"""Document 001's route from scml's negotiation tables to samples; the code is `hrl_xf.data_pipeline`'s."""

from litaagent_std.hrl_xf.data_pipeline import (
    MacroSample,
    MicroSample,
    build_macro_dataset,
    build_micro_dataset,
    load_negotiation_csv,
)

__all__ = ["MacroSample", "MicroSample", "build_macro_dataset", "build_micro_dataset", "load_negotiation_csv"]
