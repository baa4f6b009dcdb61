"""Our agents for the league: `LitaAgentHRL`, its variants, explanations and the export of a submission."""
