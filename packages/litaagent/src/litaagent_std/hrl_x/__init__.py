"""The linear models of document 001, under its import paths: the baselines that every network has to beat."""
