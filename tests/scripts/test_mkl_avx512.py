import os
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "mkl_avx512.sh"
PRODUCT = """
import torch

torch.manual_seed(0)
a, b = torch.randn(200, 64), torch.randn(64, 190)
print((a @ b - (a.double() @ b.double()).float()).abs().max().item())
"""


def can_build() -> bool:
    cpu = Path("/proc/cpuinfo")
    return shutil.which("cc") is not None and cpu.exists() and "avx512f" in cpu.read_text().split()


def test_the_library_is_built_and_products_stay_right_or_the_reason_is_given():
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    if not can_build():
        assert done.returncode == 1
        assert "AVX-512" in done.stderr or "compiler" in done.stderr
        return
    library = Path(done.stdout.strip())
    assert done.returncode == 0, done.stderr
    assert library.is_file()
    env = os.environ | {"LD_PRELOAD": str(library)}
    printed = subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, text=True, check=True, env=env)
    assert float(printed.stdout) < 1e-4
    assert printed.stderr == "", "the library could be loaded"
