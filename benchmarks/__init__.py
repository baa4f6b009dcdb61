"""Benchmarks: ``make bench-NAME`` runs ``benchmarks/NAME.py``."""
