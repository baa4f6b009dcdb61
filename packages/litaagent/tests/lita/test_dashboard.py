"""``lita serve``: it serves pages until Ctrl-C, and other machines only with a token."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from lita.main import main

LITA = Path(sys.executable).parent / "lita"


def test_it_serves_until_it_is_interrupted(recorded):
    words = [LITA, "serve", str(recorded), "--port", "0", "--token", "a-long-word&x"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ, process_group=0) as program:
        address = program.stdout.readline().split()[0]
        assert address.endswith("/?token=a-long-word%26x")
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(address, timeout=30) as response:
            assert b"tournament_history" in response.read()
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=30) == 0


def test_another_host_without_a_token_is_refused(recorded, capsys):
    assert main(["serve", str(recorded), "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "--token" in capsys.readouterr().err


def test_a_missing_folder_is_refused(tmp_path, capsys):
    assert main(["serve", str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_folder_that_holds_reportable_ones_is_answered_by_their_names(recorded, capsys):
    assert main(["report", str(recorded / "runs")]) == 2
    assert f"Name one or more of {recorded / 'runs/one'} {recorded / 'runs/two'}" in capsys.readouterr().err
