"""``lita export`` as people run it."""

from lita.main import main


def test_it_writes_and_verifies_a_submission(tmp_path, capsys):
    path = tmp_path / "mine.zip"
    assert main(["export", str(path), "--name", "Mine", "--days", "5"]) == 0
    printed = capsys.readouterr().out
    assert "class mine.Mine" in printed
    assert "without this project: 5 days" in printed
    assert path.is_file()


def test_wrong_options_are_refused(tmp_path, capsys):
    assert main(["export", str(tmp_path / "x.zip"), "--l4", "learned"]) == 2
    assert "l4 shall be learned, but there are no weights" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "x.zip"), "--parameters", "nothing"]) == 2
    assert "'nothing'" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "x.zip"), "--online", "nothing"]) == 2
    assert "of the package: middle_progress" in capsys.readouterr().err
    assert main(["export", str(tmp_path / "x.zip"), "--online", "middle_progress", "--l4", "greedy"]) == 2
    assert "together with other weights or other versions of the layers" in capsys.readouterr().err
    assert not (tmp_path / "x.zip").exists()
