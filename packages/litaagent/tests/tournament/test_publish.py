"""A tournament published to object storage while it runs, and read from there: byte by byte what is in its folder."""

import pytest
from benchmarks.local_s3 import local_s3

from litaagent_std.dashboard.report import make_report, pages_of
from litaagent_std.hrl_xf.data_pipeline.build import build_dataset
from litaagent_std.hrl_xf.data_pipeline.options import DatasetOptions
from litaagent_std.records.storage.remote import StorageError, local_path
from litaagent_std.tournament.config import TournamentConfig
from litaagent_std.tournament.run import run_tournament


def config(folder, address):
    return TournamentConfig(
        competitors=("RandomStd", "GreedyStd"),
        configs=2,
        runs=1,
        steps=5,
        levels=2,
        shard_size=2,
        csv=False,
        quiet=True,
        executor="inline",
        output_dir=folder,
        publish_to=address,
    )


@pytest.mark.filterwarnings("ignore:.*PYTHONHASHSEED")
def test_a_published_tournament_is_read_as_the_folder_itself(tmp_path, tree, monkeypatch):
    monkeypatch.setenv("LITA_CACHE", str(tmp_path / "cache"))
    folder, address = tmp_path / "spring", "s3://league/spring"
    with local_s3("league") as server:
        assert run_tournament(config(folder, address)).finished
        manifests = [place for place, name in enumerate(server.written) if name.endswith("manifest.json")]
        files = [place for place, name in enumerate(server.written) if name.endswith(".parquet")]
        assert len(manifests) >= 2, "a manifest for every shard that was completed"
        assert max(files) < max(manifests), "the manifest comes last"
        copy = local_path(address)
        assert tree(copy / "records") == tree(folder / "records")
        server.read.clear()
        assert local_path(address) == copy
        assert server.read == ["league/spring/records/manifest.json"], "what is known by its digest is not read again"

        options = DatasetOptions(agent_name="Greedy")
        for source, target in ((address, "from_address"), (folder, "from_folder")):
            build_dataset(source, tmp_path / target, options, num_workers=1)
            page = pages_of(local_path(source))
            make_report(page, tmp_path / f"{target}.html", title="spring", figures=False)
        assert tree(tmp_path / "from_address") == tree(tmp_path / "from_folder")
        pages = [(tmp_path / f"{name}.html").read_text(encoding="utf-8") for name in ("from_address", "from_folder")]
        assert pages[0].replace(copy.name, "spring") == pages[1]

        del server.objects["league/spring/records/manifest.json"]
        server.objects["league/other/records/manifest.json"] = (folder / "records" / "manifest.json").read_bytes()
        with pytest.raises(StorageError, match="cannot be read"):
            local_path("s3://league")  # a manifest whose files are not there


@pytest.mark.filterwarnings("ignore:.*PYTHONHASHSEED")
def test_storage_that_takes_nothing_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("LITA_CACHE", str(tmp_path / "cache"))
    with local_s3("league"):
        with pytest.raises(StorageError, match="s3://elsewhere/spring/records cannot be written"):
            run_tournament(config(tmp_path / "spring", "s3://elsewhere/spring"))
        assert run_tournament(config(tmp_path / "spring", "s3://league/spring")).finished, "the same command uploads"
        assert (local_path("s3://league/spring") / "records" / "manifest.json").exists()
