"""The hierarchical agent: its shell for the league, its training and its online learning."""
