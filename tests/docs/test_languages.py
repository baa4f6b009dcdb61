"""Pages in several languages agree in code, commands, pictures, links, figures and headings."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LANGUAGE = re.compile(r"\.(zh-CN|ja)\b")
TRANSLATED = sorted(path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])
TRANSLATED = [path for path in TRANSLATED if LANGUAGE.search(path.name) and "_build" not in path.parts]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|\{doc\}`([^`]+)`")
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
HAN = re.compile(r"[\u4e00-\u9fff]")
KANA = re.compile(r"[\u3040-\u30ff]")


def english_of(page):
    return page.with_name(LANGUAGE.sub("", page.name))


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
    return sorted(LANGUAGE.sub("", target or document) for target, document in LINK.findall(text))


def numbers(text):
    """Return the decimal numbers of running text and tables."""
    return sorted(re.findall(r"\d+\.\d+", BLOCK.sub("", text)))


def spans(text):
    """Return the inline code: names, options, commands."""
    return sorted(" ".join(LANGUAGE.sub("", span).split()) for span in SPAN.findall(BLOCK.sub("", text)))


def test_the_first_pages_are_in_three_languages_and_every_how_to_in_chinese():
    names = {str(path.relative_to(ROOT)) for path in TRANSLATED}
    both = {f"{page}.{language}.md" for page in ("README", "docs/quickstart") for language in ("zh-CN", "ja")}
    pages = {path for path in (ROOT / "docs/howto").glob("*.md") if not LANGUAGE.search(path.name)}
    assert both | {f"docs/howto/{page.stem}.zh-CN.md" for page in pages} <= names
    assert {"docs/concepts/league.zh-CN.md", "docs/concepts/layers.zh-CN.md"} <= names


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_translation_agrees_with_the_english_page(page):
    translated, english = page.read_text(encoding="utf-8"), english_of(page).read_text(encoding="utf-8")
    assert code(translated) == code(english)
    assert links(translated) == links(english)
    assert numbers(translated) == numbers(english)
    assert spans(translated) == spans(english)
    headings = [re.findall(r"^#+ ", BLOCK.sub("", text), re.MULTILINE) for text in (translated, english)]
    assert headings[0] == headings[1]
    assert HAN.search(translated)
    assert bool(KANA.search(translated)) == (".ja." in page.name)
