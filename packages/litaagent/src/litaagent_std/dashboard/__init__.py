"""The web page and the static report: records, evaluations and trainings to look at."""
