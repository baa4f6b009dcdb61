"""Write the notebooks of ``examples/notebooks`` from the scripts beside them.

A script has cells that begin with ``# %%``; one that begins with ``# %% [markdown]`` is text in comments. The script is
the source, and what the tests run; the notebook is the same for people who like notebooks::

    python scripts/notebooks.py          # write them
    python scripts/notebooks.py --check  # exit status 1 if one is not what its script says
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
_KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def notebook(script: str) -> dict[str, Any]:
    """Return the notebook (format 4.5, without outputs) of a script."""
    cells = []
    for number, part in enumerate(re.split(r"^# %%", script, flags=re.MULTILINE)[1:]):
        head, _, body = part.partition("\n")
        is_text = "[markdown]" in head
        text = re.sub(r"^# ?", "", body, flags=re.MULTILINE) if is_text else body
        cell: dict[str, Any] = {"cell_type": "markdown" if is_text else "code", "id": f"cell-{number}", "metadata": {}}
        cell["source"] = text.strip().splitlines(keepends=True)
        cells.append(cell if is_text else cell | {"execution_count": None, "outputs": []})
    return {"cells": cells, "metadata": _KERNEL, "nbformat": 4, "nbformat_minor": 5}


def main() -> int:
    """Write or check all notebooks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and compare")
    check = parser.parse_args().check
    wrong = []
    for path in sorted(FOLDER.glob("*.py")):
        content = json.dumps(notebook(path.read_text(encoding="utf-8")), indent=1, ensure_ascii=False) + "\n"
        target = path.with_suffix(".ipynb")
        if check and (not target.exists() or target.read_text(encoding="utf-8") != content):
            wrong.append(target.name)
        elif not check:
            target.write_text(content, encoding="utf-8")
    if wrong:
        print(f"not what their scripts say: {', '.join(wrong)}; run python scripts/notebooks.py", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
