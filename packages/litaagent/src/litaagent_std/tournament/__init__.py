"""Tournaments of the Standard league, with complete records.

`run.run_tournament` is ``lita tournament`` and ``lita collect``: `competitors` resolves names, `plan` says who sits
where in which world, `play` plays one, `folder` finds the folder to resume in, `standings` computes the results from
the records, `export` writes them in scml's form.
"""
