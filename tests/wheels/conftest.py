"""Wheels in clean environments: minutes of downloads, so only ``make test-wheels`` runs these tests."""

import os

if "LITA_WHEELS" not in os.environ:
    collect_ignore_glob = ["test_*.py"]
