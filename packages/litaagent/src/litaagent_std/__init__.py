"""litaagent_std: the SCML Standard league — world, tournaments, records, the four-layer agent, training."""
