"""What the tests of pages share: the texts of a rendered page."""

from html.parser import HTMLParser

import pytest

from litaagent_std.dashboard.render import render_page


class _Messages(HTMLParser):
    """Collects the texts of paragraphs by their class ``text-TONE``."""

    def __init__(self):
        super().__init__()
        self.messages = []
        self._is_open = False

    def handle_starttag(self, tag, attributes):
        classes = dict(attributes).get("class") or ""
        if tag == "p" and classes.startswith("text-"):
            self.messages.append([classes.removeprefix("text-"), ""])
            self._is_open = True

    def handle_endtag(self, tag):
        if tag == "p":
            self._is_open = False

    def handle_data(self, data):
        if self._is_open:
            self.messages[-1][1] += data


@pytest.fixture(scope="session")
def html():
    """Renders a page as the server does."""
    return lambda page: render_page(page, {}, "/source.zip")


@pytest.fixture(scope="session")
def texts(html):
    """The messages of a page in a tone: note, warning or error."""

    def read(page, tone):
        parser = _Messages()
        parser.feed(html(page))
        return [" ".join(text.split()) for own, text in parser.messages if own == tone]

    return read
