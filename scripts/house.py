"""Print how the source tree reads from outside: modules and lines per folder, public names, cycles, repeated code.

``make house`` calls it. It exits non-zero when a folder holds more than 14 modules or folders import each other in a
cycle. The column "before" holds the figures of commit 6082f07, measured by this script on its tree.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).parents[1]
SOURCES: Final = tuple(sorted(ROOT.glob("packages/*/src")))
FOLDER_WISH: Final = 12
FOLDER_LIMIT: Final = 14
REPEATED_LINES: Final = 8
BEFORE: Final = {
    "modules": "425",
    "lines": "56974",
    "largest folder": "34",
    "folders over 12 modules": "12",
    "modules imported by exactly one other": "119",
    "public names": "1273",
    "share of comment lines": "0.7 %",
    "cycles between folders": "2",
    "repeated blocks": "8 (66 lines)",
}
WISHES: Final = {
    "largest folder": f"<= {FOLDER_LIMIT}",
    "folders over 12 modules": "few",
    "public names": "a third",
    "share of comment lines": "2–4 % in array code",
    "cycles between folders": "0",
    "repeated blocks": "0",
}


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the source tree: its dotted name, file, text and syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        """Whether it is the ``__init__`` of a folder."""
        return self.path.name == "__init__.py"

    @property
    def folder(self) -> str:
        """The dotted name of the folder that holds the file."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def read_modules(sources: Iterable[Path]) -> dict[str, Module]:
    """Read every module below the source folders, by dotted name."""
    modules = {}
    for source in sources:
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            modules[name] = Module(name, path, text, ast.parse(text))
    return modules


def imports_of(module: Module, known: Mapping[str, Module], *, typing: bool = False) -> set[str]:
    """Return the modules that a module imports; imports for type checkers alone count only with ``typing``."""
    imported: set[str] = set()
    skipped = set() if typing else set(_type_checking(module.tree))
    for node in ast.walk(module.tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names if alias.name in known}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, module)
            for alias in node.names:
                name = f"{base}.{alias.name}"
                imported |= {name if name in known else base} & known.keys()
    return imported - {module.name}


def _type_checking(tree: ast.Module) -> Iterable[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for statement in node.body:
                yield from ast.walk(statement)


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    parts = module.folder.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, *([node.module] if node.module else [])])


def public_names(module: Module) -> int:
    """Count the public classes and functions that a module defines at its top level."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return sum(isinstance(node, kinds) and not node.name.startswith("_") for node in module.tree.body)


def door_names(module: Module) -> int:
    """Count the names in the ``__all__`` of a distribution's top-level package."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return len(ast.literal_eval(node.value))
    return 0


def comment_lines(module: Module) -> int:
    """Count the comments that explain code; those for linters and type checkers do not count."""
    with module.path.open("rb") as file:
        comments = [token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    return sum(not comment.startswith(("# noqa", "# type:", "# SPDX")) for comment in comments)


def cycles(imports: Mapping[str, set[str]], modules: Mapping[str, Module]) -> list[list[str]]:
    """Return the cycles between the children of each folder, where at least one child is a folder."""
    cycles_found = []
    folders = {module.folder for module in modules.values()}
    for folder in sorted(folders):
        graph: dict[str, set[str]] = defaultdict(set)
        for name, targets in imports.items():
            source = _child(folder, name)
            for target in targets:
                child = _child(folder, target)
                if source and child and source != child:
                    graph[source].add(child)
        components = _components(graph)
        cycles_found += [sorted(part) for part in components if len(part) > 1 and any(node in folders for node in part)]
    return cycles_found


def _child(folder: str, name: str) -> str | None:
    """Return the direct child of a folder that a module belongs to; None for the folder's own door and outsiders."""
    if not name.startswith(f"{folder}."):
        return None
    return f"{folder}.{name[len(folder) + 1 :].split('.')[0]}"


def _components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of a small graph."""
    reach = {node: _reachable(graph, node) for node in graph}
    parts: list[set[str]] = []
    for node, targets in reach.items():
        part = {node} | {target for target in targets if node in reach.get(target, set())}
        if part not in parts:
            parts.append(part)
    return parts


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    waiting, seen = [start], set()
    while waiting:
        for target in graph.get(waiting.pop(), set()) - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def repeated_blocks(modules: Iterable[Module]) -> list[tuple[str, int, str, int, int]]:
    """Return blocks of equal code lines: first module and line, second module and line, number of lines."""
    lines: list[tuple[str, int, str]] = []
    for module in modules:
        lines += [(module.name, number, text) for number, text in _code_lines(module)]
        lines.append((module.name, 0, f"# end of {module.name}"))
    seen: dict[tuple[str, ...], int] = {}
    blocks: list[tuple[str, int, str, int, int]] = []
    index = 0
    while index + REPEATED_LINES <= len(lines):
        window = tuple(text for _, _, text in lines[index : index + REPEATED_LINES])
        first = seen.setdefault(window, index)
        if first == index:
            index += 1
            continue
        length = REPEATED_LINES
        while index + length < len(lines) and lines[first + length][2] == lines[index + length][2]:
            length += 1
        blocks.append((*lines[first][:2], *lines[index][:2], length))
        index += length
    return blocks


def _code_lines(module: Module) -> Iterable[tuple[int, str]]:
    """Yield the code lines of a module: no imports, docstrings, comments, blank lines or lone brackets."""
    skipped: set[int] = set()
    for node in ast.walk(module.tree):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if text or isinstance(node, ast.Import | ast.ImportFrom):
            skipped.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for number, line in enumerate(module.text.splitlines(), start=1):
        stripped = line.strip()
        if number not in skipped and len(stripped) > 2 and not stripped.startswith("#"):
            yield number, stripped


def main() -> int:
    """Print the figures; the return value is the exit status."""
    sources = [Path(word) for word in sys.argv[1:]] or list(SOURCES)
    modules = read_modules(sources)
    imports = {name: imports_of(module, modules) for name, module in modules.items()}
    everything = {name: imports_of(module, modules, typing=True) for name, module in modules.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, targets in everything.items():
        for target in targets:
            importers[target].add(name)
    folders: dict[str, list[Module]] = defaultdict(list)
    for module in modules.values():
        folders[module.folder].append(module)
    circles, blocks = cycles(imports, modules), repeated_blocks(modules.values())
    once = [name for name, module in modules.items() if not module.is_package and len(importers[name]) == 1]
    lines = sum(len(module.text.splitlines()) for module in modules.values())
    comments = sum(map(comment_lines, modules.values()))
    largest = max(len(members) for members in folders.values())
    doors = ", ".join(f"{n} {door_names(modules[n])}" for n in ("apexrl", "hmasd", "litaagent_std") if n in modules)
    figures = {
        "modules": str(len(modules)),
        "lines": str(lines),
        "largest folder": str(largest),
        "folders over 12 modules": str(sum(len(members) > FOLDER_WISH for members in folders.values())),
        "modules imported by exactly one other": str(len(once)),
        "public names": str(sum(map(public_names, modules.values()))),
        "names at the packages' doors": doors,
        "share of comment lines": f"{comments / lines:.1%}".replace("%", " %"),
        "cycles between folders": str(len(circles)),
        "repeated blocks": f"{len(blocks)} ({sum(block[4] for block in blocks)} lines)",
    }
    _show(folders, figures)
    for name in sorted(once):
        print(f"imported only by {next(iter(importers[name]))}: {name}")
    for first, first_line, second, second_line, length in blocks:
        print(f"{length} equal lines: {first}:{first_line} and {second}:{second_line}")
    for circle in circles:
        print(f"cycle: {' <-> '.join(circle)}")
    return int(bool(circles) or largest > FOLDER_LIMIT)


def _show(folders: Mapping[str, list[Module]], figures: Mapping[str, str]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    tree = Table("folder", "modules", "lines", "")
    for folder, members in sorted(folders.items()):
        size = sum(len(module.text.splitlines()) for module in members)
        tree.add_row(folder, str(len(members)), str(size), "over 12" if len(members) > FOLDER_WISH else "")
    table = Table("figure", "before", "now", "wish")
    for name, value in figures.items():
        table.add_row(name, BEFORE.get(name, "–"), value, WISHES.get(name, ""))
    console.print(tree)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
