"""hmasd: hierarchical multi-agent skill discovery with strictly synchronous on-policy training."""
