"""The arena: paired evaluation of agents, with statistics that say when enough worlds were played."""
