"""The fast engine, which hosts unmodified agents and plays the same worlds as scml, event by event.

Modules, from the whole to the parts:
    engine: :class:`FastWorld`, the loop over days.
    roster: Seats and agents of a world, made from its setup.
    seats: A factory with its agent, hosted or native.
    scheduling: Which negotiations a day has, in which order they run, and what follows from their ends.
    negotiation: One negotiation, by the alternating offers protocol.
    turns: How an agent is asked for its turn.
    external: Seats whose decisions come from outside, for training.
    contracts: The book of open contracts.
    ledger: The end of a day: execution, trading prices, settlement, bankruptcies.
    reports: Events about whole days, and the bulletin board.
    interface: What an agent touches.
"""
