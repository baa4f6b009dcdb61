"""Who plays: the registry of competitors, their integer cast, parameter files and a smoke check."""
