import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "scripts" / "links.py"


@pytest.fixture(scope="module")
def links():
    spec = importlib.util.spec_from_file_location("links", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    """Two pages and a picture, with links of every kind that leads somewhere."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/picture one.svg").write_text("<svg/>")
    (tmp_path / "index.html").write_text(
        '<h1 id="top">1</h1><a href="#top">a</a><a href="sub/page.html#日本">b</a><a href="https://example.org/x">c</a>'
        '<img src="sub/picture%20one.svg"/><a href="sub">d</a><a href="mailto:a@b">e</a>'
    )
    (tmp_path / "sub/page.html").write_text('<h2 id="日本">2</h2><a name="old"></a><a href="../index.html#top">f</a>')
    return tmp_path


def test_links_that_lead_somewhere_pass(links, folder, capsys):
    assert links.main(folder) == 0
    assert "all lead somewhere" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["none.html", "#none", "sub/page.html#top", "sub/none.svg", "../outside.html"])
def test_a_link_that_leads_nowhere_is_named(links, folder, target, capsys):
    (folder.parent / "outside.html").write_text("exists, but not in the build")
    (folder / "more.html").write_text(f'<a href="{target}">x</a><a href="sub/page.html#old">y</a>')
    assert links.main(folder) == 1
    assert capsys.readouterr().err == f"more.html: {target}\n"


def test_a_folder_without_pages_fails(links, tmp_path, capsys):
    assert links.main(tmp_path) == 1
    assert "make docs" in capsys.readouterr().err
