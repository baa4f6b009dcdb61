"""What the cluster benchmark says about results, and that its commands are commands. It is not run here."""

import urllib.request

import pytest
from benchmarks.cluster import _figures, commands
from benchmarks.local_s3 import local_s3

from apexrl.configuration import from_command_line
from lita.main import command

SAME = {"digest": "a", "files": 3, "seconds": 10.0, "cpu_seconds": 1.0, "cpus": 3, "lost": 0, "added": 0}


def test_every_command_is_one():
    for name, made in commands(1).items():
        words = [*made.words, "--executor", "ray", "--output-dir", "run"]
        config = from_command_line(command(words[0])[0], words[1:], name)
        assert config.executor == "ray"
        assert config.workers is None, "all CPUs of the cluster"


@pytest.mark.parametrize(
    ("change", "missed"),
    [({}, []), ({"digest": "b"}, ["results other than inline"]), ({"lost": 0}, ["nodes lost"])],
)
def test_a_figure_that_must_fail_fails(change, missed):
    disturbed = SAME | {"seconds": 40.0, "lost": 2, "added": 2} | change
    figures = _figures("arena", SAME, SAME, [disturbed])
    assert [figure.name.removeprefix("arena: ") for figure in figures if not figure.ok] == missed
    assert figures[-1].value == (15.0 if disturbed["lost"] else 30.0)


def test_idle_cpus_show():
    figures = _figures("arena", SAME, SAME | {"cpus": 2}, [SAME | {"lost": 1}])
    assert [figure.ok for figure in figures] == [True, False, True, True]


def test_the_local_server_keeps_what_it_is_given():
    with local_s3("bucket") as server:
        put = urllib.request.Request(f"{server.url}/bucket/a/b%20c", data=b"0123456789", method="PUT")
        assert urllib.request.urlopen(put).status == 200
        part = urllib.request.Request(f"{server.url}/bucket/a/b%20c", headers={"Range": "bytes=2-4"})
        assert urllib.request.urlopen(part).read() == b"234"
        listing = urllib.request.urlopen(f"{server.url}/bucket?list-type=2&prefix=a/").read()
        assert b"<Key>a/b c</Key><Size>10</Size>" in listing
        assert server.written == ["bucket/a/b c"]
