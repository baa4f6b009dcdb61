"""Records of tournaments: what they hold (`schema`), how they are kept (`store`) and read (`reader`).

Needs pyarrow and numpy only: no scml, no torch.
"""
