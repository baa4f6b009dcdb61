"""Every dotted name and every path of the repository that the documentation mentions exists."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = {"_build", "_generated"}
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("packages/*/README.md")])
# The changelog names modules of earlier versions; seed_documents.md has a test of its own.
ELSEWHERE = {"CHANGELOG.md", "seed_documents.md"}
PAGES = [page for page in PAGES if not GENERATED & set(page.parts) and page.name not in ELSEWHERE]
BLOCK = re.compile(r"^```.*?^```|\{doc\}`[^`]+`", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
ANCHOR = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
NAME = re.compile(r"(?<![\w./-])(?:apexrl|hmasd|litaagent_std|lita)(?:\.\w+)+(?![\w/-])")
PATH = re.compile(r"(?<![\w./-])(?:packages|docs|benchmarks|tests|scripts|runners|examples)/[\w./*-]*[\w*]")
MODULE_PATH = re.compile(r"(?<![\w./-])(?:apexrl|hmasd|litaagent_std|lita)/[\w./]*\w(?![\w-])")  # no Gymnasium ids
WRITTEN_LATER = re.compile(r"docs/_build|/NAME\b")
BASES = [ROOT, ROOT / "docs", *ROOT.glob("packages/*/src")]


def spans(page):
    """Return the inline code of a page, without blocks and links to pages."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return [" ".join(span.split()) for span in SPAN.findall(text)]


def exists(name):
    """Tell whether a dotted name is a module, or an attribute of one at any depth."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        try:
            value = importlib.import_module(".".join(words[:length]))
        except ModuleNotFoundError:
            continue
        for word in words[length:]:
            if not hasattr(value, word):
                return word in getattr(value, "__dataclass_fields__", {})
            value = getattr(value, word)
        return True
    return False


def anchors(page):
    """Return the anchors of a page's headings, as MyST and GitHub make them."""
    headings = HEADING.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def is_file_or_folder(path):
    """Tell whether a path or pattern matches something below the root, the documentation or a folder of sources."""
    return any(next(base.glob(path), None) is not None for base in BASES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_paths_and_links_exist(page):
    code = spans(page)
    names = {name for span in code for name in NAME.findall(span)}
    paths = {path for span in code for pattern in (PATH, MODULE_PATH) for path in pattern.findall(span)}
    links = {link for link in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))) if ":" not in link}
    assert [name for name in sorted(names) if not exists(name)] == []
    assert [path for path in sorted(paths) if not WRITTEN_LATER.search(path) and not is_file_or_folder(path)] == []
    assert [link for link in sorted(links) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page):
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    found = [(target, anchor) for target, anchor in ANCHOR.findall(text) if ":" not in target]
    targets = [(page.parent / target if target else page, anchor) for target, anchor in found]
    assert [f"{path.name}#{anchor}" for path, anchor in targets if anchor not in anchors(path)] == []


def test_the_tree_of_the_architecture_page_exists():
    text = (ROOT / "docs/concepts/architecture.md").read_text(encoding="utf-8")
    tree = re.search(r"^```text\npackages/\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1]
    folder, paths = ROOT / "packages", []
    for indent, name in re.findall(r"^( +)(\S+)", tree, re.MULTILINE):
        if len(indent) == 2:
            folder = ROOT / "packages" / name
        paths.append(folder if len(indent) == 2 else folder / name)
    assert len(paths) > 20
    assert [str(path) for path in paths if not path.exists()] == []


def test_the_check_finds_wrong_names():
    assert exists("apexrl.PPO")
    assert exists("litaagent_std.world.run.run_world")
    assert exists("apexrl.algorithms.ppo.PPOConfig.learning_rate")
    assert not exists("apexrl.nothing.here")
    assert not exists("hmasd.agent.Nobody")
    assert is_file_or_folder("litaagent_std/hrl_xf/rewards.py")
    assert is_file_or_folder("benchmarks/results/*.json")
    assert not is_file_or_folder("docs/nothing.md")
    assert NAME.findall("see apexrl.PPO, lita.main and hmasd") == ["apexrl.PPO", "lita.main"]
