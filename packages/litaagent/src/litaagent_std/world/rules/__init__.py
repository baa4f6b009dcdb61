"""The rules of the Standard league (scml 0.8.4) as pure functions, to the last bit.

Modules:
    settlement: A factory's day: production, bill, revenue, penalties, inventory.
    limits: The best and the worst utility that a factory's day can bring.
    prices: Trading prices, and the price range of negotiations.
    contracts: Who negotiates with whom, about which issues, and what a contract is annotated with.
    exogenous: Contracts that the market forces on the first and the last level.
    bankruptcy: Who is bankrupt, which contracts that nullifies, and the score.
"""
