"""``lita dataset export``: a dataset as Parquet, with a card."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from apexrl.configuration import configuration


@configuration
class Config:
    """Write a dataset as macro.parquet and micro.parquet with a README.md that explains them."""

    path: Annotated[Path, Positional]
    """A dataset's folder."""

    output_dir: Path | None = None
    """Where to. Default: the folder ``parquet`` in the dataset."""


def run(config: Config) -> int:
    """Export the dataset."""
    from litaagent_std.hrl_xf.data_pipeline.dataset import OfflineData
    from litaagent_std.hrl_xf.data_pipeline.export import export_parquet

    data = OfflineData.open(config.path, check=False)
    folder = export_parquet(data, config.output_dir or config.path / "parquet")
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    print(f"{folder}: {len(data.macro)} mornings, {len(data.micro)} actions, {size:.1f} MB")
    return 0
