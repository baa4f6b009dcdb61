"""Online training in the league: environments, opponents, learners and the synchronous loop."""
