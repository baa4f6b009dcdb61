"""The privileged teacher: it knows what partners accept, labels what a student does, and is no part of the agent."""

import json
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from litaagent_std import LitaAgentHRL, TournamentConfig, run_tournament
from litaagent_std.agents.export import Submission, write
from litaagent_std.hrl_xf.data_pipeline.errors import BadSampleError
from litaagent_std.hrl_xf.data_pipeline.extraction.world_samples import world_samples
from litaagent_std.hrl_xf.teacher import TeacherAgent, type_of
from litaagent_std.hrl_xf.training.config import TrainRunConfig
from litaagent_std.hrl_xf.training.launch import train
from litaagent_std.policy.l3.heuristic import ARCHETYPES
from litaagent_std.policy.layers import Layers
from litaagent_std.records.recorder import Recorder, WorldFacts
from litaagent_std.records.world import WorldRecord
from litaagent_std.world.fast.engine import FastWorld
from litaagent_std.world.run import run_world
from litaagent_std.world.setup import AgentSpec, official_setup

OURS = "litaagent_std.agents.hrl.LitaAgentHRL"
TEACHER = "litaagent_std.hrl_xf.teacher.TeacherAgent"


@pytest.fixture(scope="module")
def setup():
    """A world of default agents with an open seat at the middle level, 1."""
    return replace(official_setup(4, n_days=12, n_levels=3), neutral_names=True)


@pytest.fixture(scope="module")
def seat(setup):
    return next(index for index, factory in enumerate(setup.factories) if factory.level == 1)


def seated(setup, seat, path, **params):
    return setup.with_agents({seat: AgentSpec(path, params, competitor=True)})


def recorded(setup, *, reasons=True):
    recorder = Recorder(setup, WorldFacts(0, 0, 0, 0, 5, (None,) * setup.n_seats), reasons=reasons)
    run_world(setup, observers=[recorder], defaults="native")
    return WorldRecord(recorder.tables())


def answers(record):
    """Probability of acceptance of every counter-offer, and whether it was accepted."""
    samples = world_samples(record, [seat_of(record)], reasons=True)
    known = (samples.micro["taken"] >= 0) & ~np.isnan(samples.micro["reason_acceptance"])
    return samples.micro["reason_acceptance"][known], samples.micro["taken"][known] > 0


def seat_of(record):
    return next(number for number in range(len(record.names)) if record.reasons(number) is not None)


def test_it_knows_what_native_partners_accept(setup, seat):
    knows, took = answers(recorded(seated(setup, seat, TEACHER)))
    guesses, guessed = answers(recorded(seated(setup, seat, OURS)))
    assert took[knows > 0.9].mean() > 0.85  # another seller may have come first
    assert took[knows < 0.05].mean() < 0.02
    error, usual = ((knows - took) ** 2).mean(), ((guesses - guessed) ** 2).mean()
    assert error < usual / 2


def test_types_are_those_of_the_classes():
    kinds = ("rand.RandomStdAgent", "greedy.GreedyStdAgent", "rand.SyncRandomStdAgent")
    agents = [AgentSpec(f"scml.std.agents.{kind}").load()() for kind in kinds]
    assert [ARCHETYPES[type_of(agent)] for agent in agents] == ["random", "greedy", "sharing"]
    assert ARCHETYPES[type_of(TeacherAgent())] == "able"


def test_a_student_plays_as_it_would_alone(setup, seat):
    scores = []
    for path, params in ((OURS, {}), (TEACHER, {"student": {}}), (TEACHER, {})):
        world = FastWorld(seated(setup, seat, path, **params), defaults="native")
        world.run()
        scores.append(world.scores())
    assert scores[0] == scores[1] != scores[2]


def test_labels_of_a_dataset_are_the_teachers(setup, seat):
    record = recorded(seated(setup, seat, TEACHER, student={}))
    taken = world_samples(record, [seat]).micro
    labelled = world_samples(record, [seat], decisions="reasons").micro
    decisions = record.reasons(seat).decisions
    assert len(decisions) >= len(taken["op"]) > 50
    # inputs and bases are those of the states that the student reached
    for name in taken.keys() - {"op", "offer", "taken"}:
        np.testing.assert_array_equal(taken[name], labelled[name])
    other = (taken["op"] != labelled["op"]) | (taken["offer"] != labelled["offer"]).any(1)
    assert 0.02 < other.mean() < 0.9
    assert (labelled["taken"][other] == -1).all()
    np.testing.assert_array_equal(taken["taken"][~other], labelled["taken"][~other])
    # counter-offers of the dataset are those that the teacher logged, with leads for delivery days
    offers = {tuple(offer) for offer in labelled["offer"][labelled["op"] == 1].tolist()}
    logged = [(made.decision.offer, made.day) for made in decisions if made.decision.kind == "reject"]
    assert offers <= {(offer.quantity, offer.time - day, offer.price) for offer, day in logged}
    assert (labelled["offer"][labelled["op"] != 1] == -1).all()


def test_a_teacher_that_plays_labels_what_it_does(setup, seat):
    record = recorded(seated(setup, seat, TEACHER))
    taken, labelled = (world_samples(record, [seat], decisions=which).micro for which in ("taken", "reasons"))
    for name in ("op", "offer", "taken"):
        np.testing.assert_array_equal(taken[name], labelled[name])


def test_labels_need_reasons(setup, seat):
    record = recorded(seated(setup, seat, OURS), reasons=False)
    with pytest.raises(BadSampleError, match="--reasons"):
        world_samples(record, [seat], decisions="reasons")


def test_a_student_learns_from_its_labels_and_plays(tmp_path, monkeypatch):
    """The documented way: collect with a student, train L3 on the labels, collect again with the trained student."""
    monkeypatch.chdir(tmp_path)
    student: dict[str, str] = {}
    for step in (0, 1):
        collected = TournamentConfig(
            competitors=(f"{TEACHER}:{json.dumps({'student': student})}", "GreedyStd"),
            configs=2,
            runs=1,
            steps=5,
            levels=2,
            seed=step,
            executor="inline",
            quiet=True,
            csv=False,
            reasons=True,
            output_dir=tmp_path / "history" / str(step),
        )
        assert run_tournament(collected).exit_code == 0
        config = TrainRunConfig(
            data_dir=tmp_path / "history",
            agent_name="TeacherAgent",
            decisions="reasons",
            phases=("l2", "l3"),
            l2_epochs=0,
            l3_epochs=1,
            backfill_folds=2,
            split_ratios=(1.0, 0.0, 0.0),
            num_workers=1,
            output_dir=tmp_path / f"taught{step}",
        )
        assert train(config) == 0
        student = {"weights": str(tmp_path / f"taught{step}")}
    manifests = list((tmp_path / "history" / "datasets").glob("*/manifest.json"))
    assert len(manifests) == 2  # the second one holds both collections
    agent = LitaAgentHRL(**student)
    assert agent.brain.layers == Layers(l2="learned", l3="learned")


def test_the_shipped_agent_cannot_reach_it(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        Layers(l3="teacher")
    code = "import sys, litaagent_std.agents.hrl, litaagent_std.policy, litaagent_std.agents.export; "
    code += "print([name for name in sys.modules if 'teacher' in name or name.startswith('litaagent_std.world')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    write(Submission(), tmp_path / "submission.zip")
    with zipfile.ZipFile(tmp_path / "submission.zip") as opened:
        for name in opened.namelist():
            assert b"teacher" not in opened.read(name).lower()
            assert b"_world" not in opened.read(name) or not name.endswith(".py")


def test_it_refuses_other_engines(setup, seat):
    outcome = run_world(seated(setup, seat, TEACHER), "scml")
    assert sum(outcome.n_errors.values()) > 0
