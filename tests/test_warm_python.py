"""Programs in forks of a warm interpreter behave like programs in interpreters of their own."""

import pytest


def test_output_status_arguments_and_folder_are_the_programs(warm_python, tmp_path):
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    (tmp_path / "program.py").write_text(
        "import os, sys, helper\n"
        "if __name__ == '__main__':\n"
        "    print(helper.VALUE, sys.argv[1:], os.getcwd())\n"
        "    sys.exit('no')\n"
    )
    done = warm_python.run("python", tmp_path / "program.py", "a b", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (1, f"7 ['a b'] {tmp_path}\n", "no\n")


def test_programs_leave_nothing_to_each_other(warm_python, tmp_path):
    code = (
        "import os, sys; print(os.environ.get('LEFT'), 'apexrl' in sys.modules); import apexrl; os.environ['LEFT'] = ''"
    )
    outputs = {warm_python.run("python", "-c", code, folder=tmp_path).stdout for _ in range(2)}
    assert outputs == {"None False\n"}


def test_errors_and_modules(warm_python, tmp_path):
    failed = warm_python.run("python", "-c", "1 / 0", folder=tmp_path)
    assert failed.returncode == 1
    assert "ZeroDivisionError" in failed.stderr
    assert warm_python.run("python", "-m", "json.tool", "--help", folder=tmp_path).stdout.startswith("usage")


def test_a_program_that_does_not_end_is_ended_and_the_next_one_runs(warm_python, tmp_path):
    with pytest.raises(TimeoutError, match="runs for more than"):
        warm_python.run("python", "-c", "import time; time.sleep(600)", folder=tmp_path, timeout=0.5)
    assert warm_python.run("python", "-c", "print(2)", folder=tmp_path).stdout == "2\n"
