"""Who plays: names of competitors and what they stand for.

`names.resolve` turns names, groups, class paths and parameters into competitors, the same in every command. `registry`
holds the tables, `integer_offers` casts offers to whole numbers, `parameter_files` reads tuned parameters, `smoke`
checks that a competitor plays.
"""
