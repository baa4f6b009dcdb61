"""Check the links inside built pages: every local file exists, and every anchor is an id of the page it leads to.

``make docs`` runs it after the build; nothing is asked of the network::

    python scripts/links.py docs/_build/html  # exit status 1 and a line per broken link
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and what can be linked to inside it.

    Attributes:
        targets: Values of ``href`` and ``src``.
        anchors: Values of ``id``, and of ``name`` of links.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take the attributes of an element that name a target or an anchor."""
        for name, value in attrs:
            if value and name in {"href", "src"}:
                self.targets.add(value)
            elif value and (name == "id" or (tag, name) == ("a", "name")):
                self.anchors.add(value)


def broken(folder: Path) -> Iterator[str]:
    """Yield ``page: target`` for every local link below a folder that leads nowhere."""
    root = folder.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
    for path, page in pages.items():
        for target in sorted(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue  # another site, or data
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            is_missing = not to.exists() or (to in pages and anchor and anchor not in pages[to].anchors)
            if is_missing or not to.is_relative_to(root):
                yield f"{path.relative_to(root)}: {target}"


def main(folder: Path) -> int:
    """Print the broken links below a folder, and return the exit status."""
    if not any(folder.rglob("*.html")):
        print(f"{folder} has no pages: make docs builds them", file=sys.stderr)
        return 1
    wrong = list(broken(folder))
    print("\n".join(wrong) or f"links inside {folder}: all lead somewhere", file=sys.stderr if wrong else sys.stdout)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
