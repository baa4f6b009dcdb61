"""What a hosted agent touches: the objects of scml and negmas that it knows, built without their overhead.

Modules:
    awi: The agent-world interface (scml's ``OneShotAWI``).
    ufun: The utility function (scml's ``OneShotUFun``).
    agenda: The issues of a product's negotiations on a day.
    proxies: State, NMI and negotiator of a negotiation (negmas' classes).
    mechanism: What agents may ask negmas' mechanism.
    facade: What agents may ask the world.
"""
