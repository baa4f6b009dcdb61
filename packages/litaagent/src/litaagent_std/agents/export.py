"""A submission for the league: one zip that needs scml and numpy, and nothing of this project.

It holds a package with the agent's class, a copy of `litaagent_std.policy` (which imports nothing but numpy and itself,
by relative imports), the settings as JSON and the weights, beside ``requirements.txt``, ``README.md`` and ``LICENSE``.
The same inputs give the same bytes.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from apexrl.runs.atomic import write_bytes
from apexrl.runs.errors import ConfigurationError, UserFacingError
from litaagent_std import policy
from litaagent_std.agents import export_check, hrl
from litaagent_std.agents.scaffold import class_name, module_name
from litaagent_std.policy.digest import check_l1_digest, l1_digest
from litaagent_std.policy.layers import Layers
from litaagent_std.policy.networks.weights import weights_path

__all__ = ["Submission", "SubmissionError", "contents", "verify", "write"]

_MOVED: Final = {
    "policy": "litaagent_std.policy",
    "agent": "litaagent_std.agents.hrl",
}
"""Modules and packages of this project that are copied, by their name in the submission's package."""
_COPIED: Final = (".py", ".npz")
"""Files of the policy that are copied: sources, and weights that come with it."""
_TIMESTAMP: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644 << 16
_BASE_CLASS: Final = "LitaAgentHRL"
_DISTRIBUTION: Final = "litaagent"


class SubmissionError(UserFacingError):
    """A submission does not play where the league would play it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What is submitted.

    Attributes:
        name: Name of the agent's class.
        settings: Arguments of `LitaAgentHRL`: layers and parameters, in plain values.
        weights: File or folder of trained weights.
    """

    name: str = _BASE_CLASS
    settings: Mapping[str, Any] = field(default_factory=dict)
    weights: Path | None = None

    def __post_init__(self) -> None:
        class_name(self.name)

    @property
    def package(self) -> str:
        """Name of the package, from the class: ``LitaAgentHRL`` is ``lita_agent_hrl``."""
        return module_name(self.name)

    @property
    def class_path(self) -> str:
        """The agent's class as the league's form asks for it."""
        return f"{self.package}.{self.name}"


def contents(submission: Submission) -> dict[str, bytes]:
    """Return every file of a submission by its name in the zip.

    Raises:
        ConfigurationError: If the weights do not exist, or the settings do not make an agent.
        SubmissionError: If a file would import this project.
    """
    weights = _weights(submission.weights)
    layers = _layers(submission)
    base = submission.package
    folder = Path(inspect.getfile(policy)).parent
    copied = [path for path in folder.rglob("*") if path.suffix in _COPIED]
    files = {f"{base}/policy/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in copied}
    files[f"{base}/policy/digest.py"] = _sealed_digest().encode()
    files[f"{base}/agent.py"] = _relative(_source(hrl), depth=1).encode()
    files[f"{base}/settings.json"] = (json.dumps(dict(submission.settings), indent=2, sort_keys=True) + "\n").encode()
    files |= {f"{base}/weights/{name}": data for name, data in weights.items()}
    files[f"{base}/__init__.py"] = _entry(submission, _weights_argument(submission.weights)).encode()
    files["requirements.txt"] = _requirements().encode()
    files["README.md"] = _readme(submission, layers).encode()
    files["LICENSE"] = _licence().encode()
    _check_imports(files)
    return dict(sorted(files.items()))


def write(submission: Submission, path: Path) -> None:
    """Write the zip, whole or not at all; the same submission gives the same bytes.

    Raises:
        UserFacingError: As `contents`; also if the file cannot be written.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, data in contents(submission).items():
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.external_attr = _MODE
            entry.create_system = 3
            archive.writestr(entry, data)
    write_bytes(path, buffer.getvalue())


def verify(path: Path, class_path: str, *, n_days: int = 10, fresh_environment: bool = False) -> dict[str, Any]:
    """Play a world from the zip where this project cannot be imported.

    Args:
        path: The zip.
        class_path: The agent's class.
        n_days: Days of the world.
        fresh_environment: Whether to make a virtual environment from the submission's own ``requirements.txt``, which
            takes minutes and a package index; otherwise this installation's libraries serve, without this project.

    Raises:
        SubmissionError: If it does not play.
    """
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        python, flags, libraries = Path(sys.executable), ["-I", "-S"], _libraries()
        if fresh_environment:
            python, flags, libraries = _environment(Path(folder)), ["-I"], []
        command = [str(python), *flags, str(export_check.__file__), folder, class_path, str(n_days), *libraries]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SubmissionError(
            f"{str(path)!r} does not play: {done.stderr.strip()[-2000:]}",
            "a submission plays a world of scml without this project",
            "correct what the message says, and export again",
        )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _libraries() -> list[str]:
    """Return the folders of this installation's libraries; ``-S`` keeps links in them to this project from working."""
    return list(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))


def _environment(folder: Path) -> Path:
    """Make a virtual environment with what the submission requires; return its Python."""
    home = folder / "environment"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "-r", str(folder / "requirements.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SubmissionError(
            f"requirements.txt cannot be installed: {done.stderr.strip()[-2000:]}",
            "the league installs it before it plays",
            "make sure that a package index can be reached, or verify without a fresh environment",
        )
    return python


def _source(module: ModuleType) -> str:
    return Path(inspect.getfile(module)).read_text(encoding="utf-8")


def _relative(source: str, depth: int) -> str:
    """Return source whose imports of this project are relative, for a module so many levels deep in the submission."""
    for name, origin in _MOVED.items():
        before, after = rf"^(\s*)from {re.escape(origin)}(\.| )", rf"\1from {'.' * depth}{name}\2"
        source = re.sub(before, after, source, flags=re.MULTILINE)
    return source


def _sealed_digest() -> str:
    """Return a module that states the digest of L1 as a constant, without the situations that it is computed from."""
    return f'''"""The digest of the L1 in this folder, as it was when the submission was made."""

from .versions import same_digest

__all__ = ["check_l1_digest", "l1_digest"]


def l1_digest() -> str:
    """Return the digest, in hexadecimal digits."""
    return "{l1_digest()}"


{inspect.getsource(check_l1_digest)}'''


def _weights(path: Path | None) -> dict[str, bytes]:
    if path is None:
        return {}
    path = weights_path(path)
    if path.is_file():
        return {path.name: path.read_bytes()}
    files = {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*.npz")}
    if not files:
        raise ConfigurationError(
            f"there are no weights in {str(path)!r}",
            "weights are .npz files, one or a folder of them",
            "name the file or folder that training wrote",
        )
    return files


def _weights_argument(path: Path | None) -> str | None:
    if path is None:
        return None
    return f"weights/{path.name}" if path.is_file() else "weights"


def _layers(submission: Submission) -> Layers:
    """Make the agent once, so that settings that do not go together are refused here; return its layers."""
    settings = dict(submission.settings)
    try:
        agent = hrl.LitaAgentHRL(**settings, weights=submission.weights)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the settings make no agent: {error}", "they are the arguments of LitaAgentHRL", "correct them"
        ) from error
    return agent.brain.layers


def _entry(submission: Submission, weights: str | None) -> str:
    """Return the package's ``__init__.py``: the agent's class with its settings and weights."""
    given = ""
    if weights is not None:
        given = f"""        settings["weights"] = _HERE / "{weights}"
"""
    return f'''"""{submission.name}, an agent for the Standard league of SCML."""

import json
from pathlib import Path

from .agent import {_BASE_CLASS} as _Agent

__all__ = ["{submission.name}"]

_HERE = Path(__file__).parent


class {submission.name}(_Agent):
    """The agent with the settings that it was submitted with."""

    def __init__(self, *args, **kwargs):
        settings = json.loads((_HERE / "settings.json").read_text(encoding="utf-8"))
{given}        super().__init__(*args, **{{**settings, **kwargs}})
'''


def _requirements() -> str:
    return f"negmas=={version('negmas')}\nnumpy>=2.0\nscml=={version('scml')}\n"


def _licence() -> str:
    """Return the text of this project's licence, from its installation or from its sources.

    Raises:
        SubmissionError: If neither holds it.
    """
    try:
        installed = distribution(_DISTRIBUTION)
        text = installed.read_text("licenses/LICENSE") or installed.read_text("LICENSE")
    except PackageNotFoundError:
        text = None
    beside = Path(inspect.getfile(policy)).parents[3] / "LICENSE"
    if text is None and beside.is_file():
        text = beside.read_text(encoding="utf-8")
    if text is None:
        raise SubmissionError(
            f"the licence of {_DISTRIBUTION} is not installed, and there is no {str(beside)!r}",
            "a submission carries the licence of the code that it holds",
            f"install {_DISTRIBUTION} with pip",
        )
    return text


def _readme(submission: Submission, versions: Layers) -> str:
    learned = versions.learned
    layers = f"Learned layers: {', '.join(learned)}." if learned else "All layers are heuristic; no weights are needed."
    if versions.typed:
        layers = f"A trained network names the types of partners. {layers if learned else ''}".rstrip()
    return f"""# {submission.name}

An agent for the Standard league of SCML: four layers, of which L1 bounds whatever the others decide. {layers}

- Class: `{submission.class_path}`
- Requires: see `requirements.txt`; nothing else.
- Settings: `{submission.package}/settings.json`.
- Notice: the code is copied from LitaAgent HRL-XF, copyright by the LitaAgent developers; this zip holds its source.
- License: AGPL-3.0-or-later, see `LICENSE`.

Try it with this folder as the working directory:

    python -c "from {submission.package} import {submission.name}; print({submission.name})"
"""


def _check_imports(files: Mapping[str, bytes]) -> None:
    """Make sure that no file imports this project, or anything else that the league does not have."""
    allowed = {*sys.stdlib_module_names, "numpy", "scml", "negmas"}
    for name, data in files.items():
        if not name.endswith(".py"):
            continue
        foreign = sorted({module for module in _imported(data.decode()) if module.partition(".")[0] not in allowed})
        if foreign:
            raise SubmissionError(
                f"{name} imports {', '.join(foreign)}",
                "a submission needs the standard library, numpy, scml and negmas alone",
                "move that code out of the policy, or make the import relative",
            )


def _imported(source: str) -> list[str]:
    modules: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            modules.append(node.module)
    return modules
