"""The world of the SCML Standard league: one interface, two engines."""
