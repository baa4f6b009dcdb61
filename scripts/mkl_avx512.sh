#!/usr/bin/env bash
# Let MKL, which multiplies torch's matrices on the CPU, use AVX-512 on processors that are not Intel's. MKL asks a
# function of its own whether the processor is Intel's; the library that is built here answers yes. Prints its path:
#   LD_PRELOAD=$(scripts/mkl_avx512.sh) python -m hmasd train --preset paper
# Results differ from those without it by rounding, as they do between processors.
set -euo pipefail
grep -qw avx512f /proc/cpuinfo || { echo "this processor has no AVX-512: MKL already uses all it can" >&2; exit 1; }
command -v cc >/dev/null || { echo "a C compiler is needed: apt-get install gcc" >&2; exit 1; }
library="$(cd "$(dirname "$0")/.." && pwd)/.venv/lib/libmkl_avx512.so"
mkdir -p "$(dirname "$library")"
echo 'int mkl_serv_intel_cpu_true(void) { return 1; }' | cc -shared -fPIC -x c -o "$library" -
echo "$library"
