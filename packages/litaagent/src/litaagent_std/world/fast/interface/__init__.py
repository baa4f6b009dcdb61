"""What an agent touches of the fast world: AWI, negotiation objects and utility function."""
