"""``lita demo`` runs end to end at its smallest scale."""

import subprocess
import sys
from pathlib import Path

LITA = Path(sys.executable).parent / "lita"


def test_demo_shows_equal_engines_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    words = [LITA, "demo", "--worlds", "1", "--days", "10", "--steps", "1024", "--output-dir", "out"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "gives the same scores" in done.stdout
    assert "LitaAgentHRL" in done.stdout
    assert (tmp_path / "out" / "checkpoints" / "final_model.pt").exists()
