"""Records of tournaments: what they hold (`schema`), how they are written (`recorder`), kept (`storage`) and read.

`reader` opens them, `world.WorldRecord` is one world of them, `reasons` are the decisions of our agent.

Needs pyarrow and numpy only: no scml, no torch.
"""
