"""The agent that plays weights from online training."""
