"""The arena: paired evaluation of agents, with a sequential test that says when enough worlds were played.

`contest.run_contest` is ``lita arena``: options to report. `evaluation` plays a `Plan` world by world, `worlds` draws
and plays one, `units` keeps finished ones under keys that name what they depend on (`behaviour` digests our agents),
`sequential` decides, `report` and `picture` show. `seeds` keeps the worlds of tuning, gates and verdict apart.
"""
