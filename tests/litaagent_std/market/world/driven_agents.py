"""A simple synchronous strategy, as a function of a decision and as an agent with the same behaviour."""

from negmas.sao import ResponseType, SAOResponse
from scml.std.agent import StdSyncAgent


def first_offers(partners, awi):
    return {partner: (3, awi.current_step, _price(partner, awi, 1.0)) for partner in partners}


def answers(offers, states, awi):
    replies = {}
    for partner, offer in offers.items():
        time = states[partner].relative_time
        if offer[0] <= 4 and offer[1] == awi.current_step and time > 0.4:
            replies[partner] = SAOResponse(ResponseType.ACCEPT_OFFER, offer)
        elif time < 0.8:
            offer = (2, awi.current_step, _price(partner, awi, 1 - time))
            replies[partner] = SAOResponse(ResponseType.REJECT_OFFER, offer)
    return replies


def _price(partner, awi, greed):
    selling = partner in awi.my_consumers
    issue = (awi.current_output_issues if selling else awi.current_input_issues)[2]
    share = greed if selling else 1 - greed
    return int(issue.min_value + share * (issue.max_value - issue.min_value))


class ExampleAgent(StdSyncAgent):
    """Its initials are those of ExternalAgent, so that factories bear the same ids."""

    def first_proposals(self):
        return first_offers(tuple(self.negotiators), self.awi)

    def counter_all(self, offers, states):
        return answers(offers, states, self.awi)
