"""``lita demo`` runs end to end at its smallest scale."""

import subprocess
import sys
from pathlib import Path

LITA = Path(sys.executable).parent / "lita"


def test_demo_trains_and_writes_a_complete_report(tmp_path: Path) -> None:
    words = [LITA, "demo", "--configs", "1", "--days", "10", "--steps", "1024", "--output-dir", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "gives the same scores" in done.stdout
    assert (tmp_path / "out/training/checkpoints/final_model.pt").exists()
    text = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert (tmp_path / "out/report.html").as_uri() in done.stdout
    for part in (
        "LitaAgentHRL",
        "Ranking by the official",
        "Supply chain",
        "Unit price, round by round",
        "Decisions of day",
        "episode/mean_reward",
    ):
        assert part in text
