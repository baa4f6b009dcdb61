"""The page's own requests: what a choice writes into the address."""

import pytest

from litaagent_std.dashboard.history import History
from litaagent_std.dashboard.server import make_app


@pytest.fixture
def choose(tmp_path):
    """Sends what a page with two choices sends, and gives the address's new search, None where it stays."""
    client = make_app(History(tmp_path)).server.test_client()

    def send(shown, chosen, search):
        places = [{"name": name, "shown": value, "type": "choice"} for name, value in shown.items()]
        inputs = [
            {"id": place, "property": "value", "value": value}
            for place, value in zip(places, chosen.values(), strict=True)
        ]
        ids = [{"id": place, "property": "id", "value": place} for place in places]
        answer = client.post(
            "/_dash-update-component",
            json={
                "output": "address.search",
                "outputs": {"id": "address", "property": "search"},
                "inputs": [inputs],
                "changedPropIds": [],
                "state": [ids, {"id": "address", "property": "search", "value": search}],
            },
        )
        return None if answer.status_code == 204 else answer.get_json()["response"]["address"]["search"]

    return send


def test_a_page_that_was_drawn_leaves_the_address_alone(choose):
    drawn = {"factory": "0", "agents": "A,B"}
    assert choose(drawn, {"factory": "0", "agents": ["A", "B"]}, "?world=4") is None


def test_a_choice_is_written_and_an_empty_one_removed(choose):
    drawn = {"factory": "0", "agents": "A,B"}
    assert choose(drawn, {"factory": "2", "agents": ["A", "B"]}, "?world=4") == "?world=4&factory=2"
    assert choose(drawn, {"factory": "0", "agents": []}, "?world=4&agents=A%2CB") == "?world=4"
    assert choose(drawn, {"factory": None, "agents": ["A", "B"]}, "?world=4&factory=0") == "?world=4"
