"""Programs in forks of one interpreter that has imported the heavy libraries.

A new interpreter takes seconds to import torch and scml, and the tests start more than a hundred programs. A fork takes
milliseconds. Only libraries are imported before it: a program still imports all of this project by itself.

Run as a script, this is that interpreter: it reads a request per line from its standard input and answers with the
process id and, at the end, with the exit status.
"""

import atexit
import contextlib
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from types import ModuleType

LIBRARIES = ("numpy", "scipy.stats", "pandas", "pyarrow.parquet", "torch", "gymnasium", "pydantic", "scml.std")
FIXED = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "COLUMNS": "200"}


def environment():
    """Return the environment of the programs: this interpreter's console scripts first, and everything fixed."""
    return os.environ | FIXED | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


class WarmPython:
    """Runs programs; use as a context manager. The interpreter starts with the first of them."""

    def __init__(self):
        self._server = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._server is not None:
            self._server.stdin.close()
            self._server.wait(30)
            self._server.stdout.close()

    def run(self, *words, folder, timeout=600):
        """Run ``python …`` or a console script such as ``lita`` in a folder; return what it printed and its status."""
        if self._server is None:
            # not buffered: a line that was read ahead would not wake select
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
            self._server = subprocess.Popen([sys.executable, __file__], env=environment(), **pipes)
        words = [str(word) for word in words]
        with tempfile.TemporaryDirectory() as kept:
            outputs = [str(Path(kept, name)) for name in ("out", "err")]
            request = {"words": words, "folder": str(folder), "outputs": outputs}
            status = self._status_of(request, timeout)
            texts = [Path(path).read_text(encoding="utf-8", errors="replace") for path in outputs]
        return subprocess.CompletedProcess(words, status, *texts)

    def _status_of(self, request, timeout):
        self._server.stdin.write(f"{json.dumps(request)}\n".encode())
        try:
            child = int(self._server.stdout.readline())
            ends = bool(select.select([self._server.stdout], [], [], timeout)[0])
        except BaseException:  # the test itself has a time limit: the next program needs another interpreter
            self._server.kill()
            self._server = None
            raise
        if not ends:
            os.killpg(child, signal.SIGKILL)
        status = int(self._server.stdout.readline())
        if not ends:
            raise TimeoutError(f"{request['words']} runs for more than {timeout} s")
        return status


def serve():
    for name in LIBRARIES:
        with contextlib.suppress(ModuleNotFoundError):  # the program will say so, if it needs it
            importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run_request(json.loads(line))
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def run_request(request):
    """Run a program in this process, which ends with it."""
    os.setsid()
    os.chdir(request["folder"])
    for descriptor, path in enumerate((os.devnull, *request["outputs"])):
        opened = os.open(path, os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    status = 1
    try:
        run_program(request["words"])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # as the interpreter does
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run_program(words):
    """Run ``python -m module``, ``python -c code``, ``python script`` or a console script."""
    program, *rest = words
    if Path(program).name.startswith("python"):
        program, *rest = rest
    if program == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif program == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        found = Path(program) if Path(program).exists() else Path(sys.executable).parent / program
        sys.argv, sys.path[0] = [str(found), *rest], str(found.resolve().parent)
        runpy.run_path(str(found), run_name="__main__")


if __name__ == "__main__":
    serve()
