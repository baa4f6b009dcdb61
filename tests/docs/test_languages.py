"""Pages that exist in two languages say the same: the same code, commands, pictures, links, figures and headings."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHINESE = sorted(path for path in [*ROOT.glob("*.zh-CN.md"), *(ROOT / "docs").glob("**/*.zh-CN.md")])
CHINESE = [path for path in CHINESE if "_build" not in path.parts]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|\{doc\}`([^`]+)`")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
HAN = re.compile(r"[\u4e00-\u9fff]")


def english_of(page):
    return page.with_name(page.name.replace(".zh-CN", ""))


def code(text):
    """Python as it stands, and the commands of shells without their comments."""
    found = []
    for language, body in BLOCK.findall(text):
        if language == "python":
            found.append(body)
        elif language in {"bash", "console"}:
            found += [re.sub(r"\s+#.*", "", line.removeprefix("$ ")) for line in body.splitlines()]
        elif not HAN.search(body) and "─" not in body:  # pictures of text have words of their own
            found.append(body)
    return found


def links(text):
    """Where a page leads, whatever the language of the page there; the link to the other language is left out."""
    found = [(one or two).replace(".zh-CN", "") for one, two in LINK.findall(text)]
    return sorted(found)


def numbers(text):
    """Figures with a point, which are measured values, of running text and tables."""
    return sorted(re.findall(r"\d+\.\d+", BLOCK.sub("", text)))


def spans(text):
    """Code in running text: names, options, commands."""
    return sorted(" ".join(span.replace(".zh-CN", "").split()) for span in SPAN.findall(BLOCK.sub("", text)))


def test_there_are_pages_in_chinese():
    names = {path.name for path in CHINESE}
    assert {"README.zh-CN.md", "quickstart.zh-CN.md", "league.zh-CN.md", "layers.zh-CN.md"} <= names


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: str(page.relative_to(ROOT)))
def test_both_languages_say_the_same(page):
    chinese, english = page.read_text(encoding="utf-8"), english_of(page).read_text(encoding="utf-8")
    assert code(chinese) == code(english)
    assert links(chinese) == links(english)
    assert numbers(chinese) == numbers(english)
    assert spans(chinese) == spans(english)
    headings = [re.findall(r"^#+ ", BLOCK.sub("", text), re.MULTILINE) for text in (chinese, english)]
    assert headings[0] == headings[1]
    assert HAN.search(chinese)
