"""The market: worlds, competitors, tournaments and their recorder."""
