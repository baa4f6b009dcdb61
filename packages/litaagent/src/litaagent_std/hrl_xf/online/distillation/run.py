"""The command ``lita distill``: samples, fit, checks and the report, each written as soon as it is finished.

::

    <folder>/
      teacher/*.npz       weights of the teacher
      samples/*.npz       one file per world
      fit/<layer>/        metrics and checkpoint of a fit
      student/*.npz       weights of the student, to play with or to train further
      checks/*.json       one file per held-out world
      report.json         errors beside those of trivial policies, agreement, scores, CPU time

A run that was killed resumes with the missing worlds; only CPU times depend on where it was killed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from apexrl.execution import Executor, RunOptions, Task
from apexrl.runs.atomic import ensure_folder, write_bytes
from apexrl.runs.errors import ConfigMismatchError, ConfigurationError
from apexrl.runs.reading import read_bytes, read_sealed, reading, write_sealed
from apexrl.runs.session import Session
from litaagent_std.hrl_xf.epochs import Interrupted
from litaagent_std.hrl_xf.online.config import Layer
from litaagent_std.hrl_xf.online.distillation.check import check_world, summarize_checks
from litaagent_std.hrl_xf.online.distillation.config import FREE_FIELDS, DistillConfig
from litaagent_std.hrl_xf.online.distillation.fitting import (
    Pairs,
    errors_of,
    fit,
    multiplications,
    new_student,
    pairs_of,
)
from litaagent_std.hrl_xf.online.distillation.samples import (
    Part,
    collect,
    jobs_of,
    part_of,
    read_inputs,
    write_inputs,
)
from litaagent_std.hrl_xf.online.hierarchy.policies import LAYERS, Hierarchy
from litaagent_std.hrl_xf.online.jobs import Job
from litaagent_std.hrl_xf.online.methods.networks import weights_of
from litaagent_std.hrl_xf.online.worlds import require_days
from litaagent_std.policy.networks.weights import Weights, weights_path
from litaagent_std.world.reproducible.hashing import fixed_for_workers

__all__ = ["Distilled", "run_distillation", "teacher_files"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Distilled:
    """Result of a distillation.

    Attributes:
        path: Weights of the student.
        report: The measurements; None if it was stopped before.
        played: Number of worlds played since the start or resume.
        exit_code: Exit status for the shell.
    """

    path: Path
    report: dict[str, Any] | None
    played: int
    exit_code: int


def run_distillation(cfg: DistillConfig) -> Distilled:
    """Start or resume a distillation.

    Raises:
        ConfigurationError: If there is no teacher, the student would not be smaller, or worlds would be too short.
        ConfigMismatchError: If the folder holds a distillation of another teacher or with other options.
    """
    require_days(cfg.days, cfg.levels, "--days")
    with (
        Session(cfg.output_dir, config=cfg, seed=cfg.seed, free=FREE_FIELDS) as session,
        fixed_for_workers(),
        cfg.make_executor() as executor,
    ):
        distillation = _Distillation(cfg, session, executor)
        try:
            report = distillation.run()
        except Interrupted:
            report = None
    return Distilled(session.path / "student", report, distillation.played, session.exit_code)


def teacher_files(path: Path) -> dict[Layer, Path]:
    """Return the weights to distil by layer: of the folder itself, or what a run's folder holds.

    Raises:
        ConfigurationError: If there are none.
    """
    folder = weights_path(path)
    files = {layer: folder / f"{layer}.npz" for layer in LAYERS if (folder / f"{layer}.npz").is_file()}
    if not files:
        raise ConfigurationError(
            f"there are no weights of layers at {str(path)!r}",
            "a teacher is the folder of a run of lita train or lita train-online, or of its weights",
            "correct the path, or train first",
        )
    return files


class _Distillation:
    """The steps of a distillation; finished worlds, fits and checks are read from the folder."""

    def __init__(self, cfg: DistillConfig, session: Session, executor: Executor) -> None:
        self.cfg, self.folder, self.played = cfg, session.path, 0
        self._executor, self._session = executor, session
        self.teacher, self._digest = self._keep_teacher()
        self.layers = self._student_layers()

    def run(self) -> dict[str, Any]:
        """Run the missing steps and return the report.

        Raises:
            Interrupted: If a stop was requested.
        """
        jobs = jobs_of(self.cfg, self.teacher)
        self._collect(jobs)
        student, fits = self._student()
        self._check(jobs, {"student": student, "zero": Hierarchy()})
        report = self._report(student, fits)
        write_sealed(self.folder / "report.json", report)
        return report

    # -- teacher and student

    def _keep_teacher(self) -> tuple[Hierarchy, str]:
        kept, digest = self.folder / "teacher", sha256()
        for layer, path in teacher_files(self.cfg.teacher).items():
            data, file = read_bytes(path), kept / f"{layer}.npz"
            if file.exists() and read_bytes(file) != data:
                raise ConfigMismatchError(
                    f"{str(self.folder)!r} distils other weights than {str(self.cfg.teacher)!r} now holds",
                    "a distillation resumes only with the teacher that it was started with",
                    f"name {str(kept)!r} as the teacher, or choose another folder",
                )
            digest.update(data)
            write_bytes(ensure_folder(kept) / f"{layer}.npz", data)
        try:
            teacher = Hierarchy.load(kept)
        except ValueError as error:
            raise ConfigurationError(str(error), "a teacher must fit this version", "train it again") from error
        return replace(teacher, learning=tuple(teacher.nets)), digest.hexdigest()

    def _student_layers(self) -> tuple[Layer, ...]:
        """Return the layers of the student.

        Raises:
            ConfigurationError: If the teacher lacks one, or the student would not be smaller.
        """
        known = tuple(self.teacher.nets)
        missing = [layer for layer in self.cfg.layers if layer not in known]
        if missing:
            raise ConfigurationError(
                f"the teacher has no {', '.join(missing)}", f"its layers are {', '.join(known)}", "leave it out"
            )
        wanted = {"l2", *(self.cfg.layers or known)}  # the others need L2's goals
        layers = tuple(layer for layer in known if layer in wanted)
        before = sum(map(multiplications, self.teacher.nets.values()))
        after = sum(multiplications(self._new_student(layer)) for layer in layers)
        if after >= before:
            raise ConfigurationError(
                f"the student would need {after} multiplications, the teacher needs {before}",
                "a student is smaller than its teacher",
                "give a smaller --dim or fewer --layers",
            )
        return layers

    def _new_student(self, layer: Layer) -> Weights:
        return weights_of(new_student(self.teacher.nets[layer], self.cfg.dim, self.cfg.seed), {})

    def _pairs(self, layer: Layer, *parts: Part) -> Pairs:
        """Return the samples of a layer in some parts."""
        return pairs_of(self.teacher.nets[layer], read_inputs(self._paths(*parts), layer))

    def _paths(self, *parts: Part) -> dict[int, Path]:
        """Return the sample files of some parts by index of the world."""
        cfg = self.cfg
        worlds = [world for world in range(cfg.worlds + cfg.held_out) if part_of(cfg, world) in parts]
        return {world: self.folder / "samples" / f"world_{world:05d}.npz" for world in worlds}

    def _student(self) -> tuple[Hierarchy, dict[str, Any]]:
        """Read the student and the report of its fit, or fit it first."""
        path, fit_file = self.folder / "student", self.folder / "fit.json"
        if path.exists() and fit_file.exists():
            with reading(path, hint="remove the folder student; the same command then fits it again"):
                return Hierarchy.load(path), read_sealed(fit_file)
        nets: dict[Layer, Weights] = {}
        fits: dict[str, Any] = {}
        for layer in self.layers:
            train, validation = self._pairs(layer, "train"), self._pairs(layer, "validation")
            folder = self.folder / "fit" / layer
            nets[layer], fits[layer] = fit(self.cfg, self.teacher.nets[layer], train, validation, folder, self._session)
            logger.info("%s: fitted to %d samples, %s", layer, len(train), fits[layer])
        student = replace(self.teacher, nets=nets)
        student.save(path, made_by="lita distill", teacher=self._digest, seed=self.cfg.seed)
        write_sealed(fit_file, fits)
        return student, fits

    # -- worlds

    def _collect(self, jobs: list[Job]) -> None:
        paths = self._paths("train", "validation", "held_out")
        missing = [world for world, path in paths.items() if not path.exists()]
        ensure_folder(self.folder / "samples")
        tasks = (Task(collect, (jobs[world],), label=f"world {world}") for world in missing)
        self._play("samples", tasks, missing, lambda world, inputs: write_inputs(paths[world], inputs))

    def _check_path(self, world: int) -> Path:
        return self.folder / "checks" / f"world_{world:05d}.json"

    def _check(self, jobs: list[Job], others: Mapping[str, Hierarchy]) -> None:
        missing = [world for world in self._paths("held_out") if not self._check_path(world).exists()]
        ensure_folder(self.folder / "checks")
        tasks = (
            Task(check_world, (jobs[world].plan, self.teacher, others), label=f"check {world}") for world in missing
        )
        self._play("checks", tasks, missing, lambda world, check: write_sealed(self._check_path(world), check))

    def _play(
        self, what: str, tasks: Iterable[Task[T]], worlds: list[int], save_world: Callable[[int, T], None]
    ) -> None:
        """Play worlds and write each as it finishes.

        Raises:
            Interrupted: If a stop was requested.
        """
        if not worlds:
            return
        options = RunOptions(time_limit=self.cfg.time_limit, on_failure="raise")
        with (
            Session(parent=self._session, sinks=(), unit=what, show_progress=not self.cfg.quiet) as session,
            closing(self._executor.run(tasks, options)) as run,
        ):
            session.begin(len(worlds))
            for number, world in enumerate(worlds, start=1):
                if session.should_stop:
                    raise Interrupted
                save_world(world, next(run).unwrap())
                self.played += 1
                session.show(number)

    # -- the report

    def _report(self, student: Hierarchy, fits: Mapping[str, Any]) -> dict[str, Any]:
        errors = {
            layer: errors_of(student.nets[layer], self._pairs(layer, "held_out"), self._pairs(layer, "train"))
            for layer in self.layers
        }
        checks = [read_sealed(self._check_path(world)) for world in self._paths("held_out")]
        return {
            "teacher": {"sha256": self._digest, **_shape(self.teacher)},
            "student": _shape(student),
            "worlds": {part: len(self._paths(part)) for part in ("train", "validation", "held_out")},
            "fit": dict(fits),
            "error": errors,
            **summarize_checks(checks),
        }


def _shape(networks: Hierarchy) -> dict[str, Any]:
    """Return the sizes of each layer's network, and the multiplications of all layers."""
    return {
        "layers": {layer: dict(weights.meta["sizes"]) for layer, weights in sorted(networks.nets.items())},
        "multiplications": sum(map(multiplications, networks.nets.values())),
    }
