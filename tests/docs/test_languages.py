"""Pages in two languages agree in code, commands, pictures, links, figures and headings."""

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
    """Return Python blocks unchanged, and commands of shell blocks without comments."""
    blocks = []
    for language, body in BLOCK.findall(text):
        if language == "python":
            blocks.append(body)
        elif language in {"bash", "console"}:
            blocks += [re.sub(r"\s+#.*", "", line.removeprefix("$ ")) for line in body.splitlines()]
        elif not HAN.search(body) and "─" not in body:  # text diagrams are translated
            blocks.append(body)
    return blocks


def links(text):
    """Return the targets of links and documents, without the suffix of the language."""
    return sorted((target or document).replace(".zh-CN", "") for target, document in LINK.findall(text))


def numbers(text):
    """Return the decimal numbers of running text and tables."""
    return sorted(re.findall(r"\d+\.\d+", BLOCK.sub("", text)))


def spans(text):
    """Return the inline code: names, options, commands."""
    return sorted(" ".join(span.replace(".zh-CN", "").split()) for span in SPAN.findall(BLOCK.sub("", text)))


def test_there_are_pages_in_chinese():
    names = {path.name for path in CHINESE}
    assert {"README.zh-CN.md", "quickstart.zh-CN.md", "league.zh-CN.md", "layers.zh-CN.md"} <= names


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: str(page.relative_to(ROOT)))
def test_both_languages_agree(page):
    chinese, english = page.read_text(encoding="utf-8"), english_of(page).read_text(encoding="utf-8")
    assert code(chinese) == code(english)
    assert links(chinese) == links(english)
    assert numbers(chinese) == numbers(english)
    assert spans(chinese) == spans(english)
    headings = [re.findall(r"^#+ ", BLOCK.sub("", text), re.MULTILINE) for text in (chinese, english)]
    assert headings[0] == headings[1]
    assert HAN.search(chinese)
