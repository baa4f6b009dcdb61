"""The run loop with a learner that needs no environment: what every tenant can rely on."""

import json
import math
import os
import signal
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apexrl.agent.learner import IterationAbandoned, Learner
from apexrl.agent.runner import EVENTS, Goal, Runner, StopTraining
from apexrl.runs.checkpoints.checkpoint import Schema, load_checkpoint
from apexrl.runs.errors import ConfigurationError, DivergedError
from apexrl.runs.session import Files, Session


class Counter(Learner):
    """Counts: each iteration adds ten units and its loss is 1 / iterations."""

    name = "test.counter"
    unit = "units"
    per_iteration = 10
    seed = 3

    def __init__(self, files=None, patience=None, collects=True):
        self.files = files or Files()
        self.patience, self.count, self.collects = patience, 0, collects
        self.fractions, self.saved, self.inside = [], [], 0

    @property
    def config(self):
        return {"size": 10}

    def collect(self):
        return {"rollout/count": float(self.count)}

    def update(self):
        self.count += 1
        if self.count == self.patience:
            self.finished = "patience is over"
        return {"train/loss": 1.0 / self.count}

    def evaluate(self):
        return {"eval/mean_reward": float(self.count)}

    def adjust(self, fraction):
        self.fractions.append(fraction)

    def start(self, fraction):
        self.fractions.append(-fraction)

    @contextmanager
    def running(self):
        self.inside += 1
        yield
        self.inside -= 1

    def before_save(self, step):
        self.saved.append(step)

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def make(learner=None, **options):
    return Runner(learner or Counter(), show_progress=False, **options)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@given(st.integers(0, 10_000), st.integers(1, 500), st.integers(1, 20_000))
def test_the_goal_is_the_first_whole_rollout_at_or_after_the_asked_total(start, rollout, asked):
    reached = Goal(asked, start, rollout).reached_at
    assert reached >= min(asked, reached)
    assert (reached - start) % rollout == 0
    if asked > start:
        assert asked <= reached < asked + rollout
    else:
        assert reached == start


def test_progress_runs_from_zero_to_one():
    goal = Goal(35, 0, 10)
    assert [goal.progress(total) for total in (0, 20, 40)] == [0.0, 0.5, 1.0]


def test_a_second_call_makes_as_much_again_and_a_resumed_one_counts_what_was_done(tmp_path):
    runner = make(save_dir=tmp_path, save_interval=1)
    assert runner.learn(total_timesteps=25).total_timesteps == 30
    assert runner.learn(total_timesteps=25).total_timesteps == 60
    again = make(save_dir=tmp_path, save_interval=1)
    assert again.resume()
    assert again.learn(total_timesteps=25).iterations == 6  # the first call had been made
    assert again.learn(total_timesteps=25).iterations == 6  # the second, too
    assert again.learn(total_timesteps=25).total_timesteps == 90


def test_a_run_that_is_beyond_what_was_asked_says_that_nothing_was_trained(tmp_path):
    first = make(save_dir=tmp_path, save_interval=1).learn(total_timesteps=55)
    assert first.reason == "reached 60 units: 55 asked, 5 more to the end of the last rollout of 10"
    again = make(save_dir=tmp_path)
    assert again.resume()
    result = again.learn(total_timesteps=25)
    assert result.reason.startswith("the run already had 60 units of the 25 asked; nothing was trained")
    assert result.iterations == 6


def test_a_finished_run_that_is_loaded_says_how_to_learn_further(tmp_path):
    make(save_dir=tmp_path, save_interval=1).learn(total_timesteps=30)
    again = make(save_dir=tmp_path)
    again.resume()
    result = again.learn(total_timesteps=30)
    assert "nothing was trained (num_iterations=… makes further ones)" in result.reason
    assert again.learn(total_timesteps=30).reason == "reached 60 units, exactly as asked"


def test_the_whole_run_is_what_fractions_are_taken_of():
    runner = make()
    runner.learn(total_timesteps=20)
    assert runner.learner.fractions == [0.0, 0.5, 1.0]
    runner.learn(num_iterations=2)
    assert runner.learner.fractions[3:] == [-0.5, 0.75, 1.0]  # not from the end of the first call


def test_intervals_count_iterations_or_progress(tmp_path):
    by_iterations = make(log_dir=tmp_path / "a", log_interval=2, save_interval=3, eval_interval=4)
    by_iterations.learn(num_iterations=5)
    assert [line["step"] for line in lines(tmp_path / "a" / "metrics.jsonl")] == [20, 40, 50]
    assert by_iterations.learner.saved == [3]
    learner = Counter()
    learner.checkpoint_step = lambda iteration, progress, interval: progress // max(1, interval) * interval
    by_progress = make(learner, save_dir=tmp_path / "b", save_interval=25, interval_unit="progress")
    by_progress.learn(num_iterations=8)
    assert learner.saved == [25, 50, 75]  # when progress passes a multiple: at 30, 50 and 80


def test_ends_are_saved_and_evaluated_where_asked(tmp_path):
    runner = make(log_dir=tmp_path, save_interval=4, save_last=True, eval_interval=4, eval_last=True)
    runner.learn(num_iterations=6)
    assert runner.learner.saved == [4, 6]
    assert ["eval/mean_reward" in line for line in lines(tmp_path / "metrics.jsonl")] == [False] * 3 + [
        True,
        False,
        True,
    ]
    final = make(Counter(Files(final="end.pt")), save_dir=tmp_path / "f", save_interval=4)
    final.learn(num_iterations=6)
    again = make(Counter(Files(final="end.pt")), save_dir=tmp_path / "f")
    assert again.resume()
    assert (again.iteration, again.learner.count) == (6, 6)


def test_a_damaged_final_checkpoint_is_named_once_and_the_one_before_is_used(tmp_path, caplog):
    final = make(Counter(Files(final="end.pt")), save_dir=tmp_path, save_interval=4)
    final.learn(num_iterations=6)
    (tmp_path / "end.pt").write_bytes((tmp_path / "end.pt").read_bytes()[:-100])

    again = make(Counter(Files(final="end.pt")), save_dir=tmp_path, save_interval=4)
    assert again.resume()
    assert (again.iteration, again.learner.count) == (4, 4)
    again.learn(num_iterations=1)
    warnings = [record.getMessage() for record in caplog.records if "end.pt" in record.getMessage()]
    assert len(warnings) == 1
    assert warnings[0].startswith("skipping the final checkpoint end.pt: ")


def test_a_learner_ends_training_by_itself():
    result = make(Counter(patience=3)).learn(num_iterations=9)
    assert (result.stopped_by, result.iterations, result.reason) == ("learner", 3, "patience is over")


def test_an_abandoned_iteration_does_not_count(tmp_path):
    class Slow(Counter):
        def update(self):
            if self.count == 2:
                os.kill(os.getpid(), signal.SIGTERM)
                assert self.session.stop.requested
                raise IterationAbandoned
            return super().update()

    for interval, saved in ((1, ["checkpoint_1.pt", "checkpoint_2.pt"]), (5, [])):
        folder = tmp_path / str(interval)
        result = make(Slow(), save_dir=folder, save_interval=interval, save_last=True).learn(num_iterations=9)
        assert (result.stopped_by, result.iterations, result.exit_code) == ("signal", 2, 143)
        assert sorted(path.name for path in folder.glob("*.pt")) == saved  # the state is half-way to the third


def test_files_bear_the_learners_names_and_state_is_held_around_work(tmp_path):
    files = Files(metrics="logs/m.jsonl", events="tf", checkpoints="models", checkpoint="m_{step}.pth", has_log=False)
    learner = Counter(files)
    runner = make(learner, log_dir=tmp_path, save_interval=1)
    runner.add_callback("post_update", lambda r: learner.inside == 1)
    assert runner.learn(num_iterations=2).stopped_by == "goal"
    assert learner.inside == 0
    assert (tmp_path / "models" / "m_2.pth").is_file()
    assert len(lines(tmp_path / "logs" / "m.jsonl")) == 2
    assert list((tmp_path / "tf").glob("events*"))


def test_runners_share_the_session_around_them(tmp_path):
    with Session(tmp_path, config={"a": 1}, seed=0, show_progress=False) as session:
        for name in ("one", "two"):
            files = Files(metrics=f"metrics/{name}.jsonl", checkpoints=".", checkpoint=f"{name}_{{step}}.pt")
            runner = make(Counter(files), session=session, save_interval=2, sinks=("jsonl",))
            assert runner.learn(num_iterations=2).stopped_by == "goal"
        session.stop.request()
        assert make(Counter(), session=session).learn(num_iterations=2).stopped_by == "signal"
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == ["one_2.pt", "two_2.pt"]
    assert len(lines(tmp_path / "metrics" / "two.jsonl")) == 2


def test_a_loss_that_is_no_number_stops_and_nothing_is_saved_after_it(tmp_path):
    class Diverging(Counter):
        def update(self):
            return super().update() | ({"train/loss": math.nan} if self.count > 3 else {})

    runner = make(Diverging(), save_dir=tmp_path, save_interval=1)
    with pytest.raises(DivergedError, match="iteration 4: train/loss is nan"):
        runner.learn(num_iterations=9)
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == [f"checkpoint_{n}.pt" for n in (1, 2, 3)]
    with pytest.raises(DivergedError, match="nothing is saved"):
        runner.save_checkpoint("mine.pt")
    assert runner.resume()
    assert runner.save_checkpoint("mine.pt").is_file()


def test_two_runs_in_one_folder_never_mix_and_nothing_is_erased(tmp_path):
    first = make(log_dir=tmp_path / "l", save_dir=tmp_path / "c", save_interval=1)
    first.learn(num_iterations=5)
    first.save_checkpoint("final_model.pt")
    second = make(log_dir=tmp_path / "l", save_dir=tmp_path / "c", save_interval=1)
    second.learn(num_iterations=2)
    assert [line["step"] for line in lines(tmp_path / "l" / "metrics.jsonl")] == [10, 20]
    assert [line["step"] for line in lines(tmp_path / "l/earlier/1/metrics.jsonl")] == [10, 20, 30, 40, 50]
    names = {"checkpoint_1.pt", "checkpoint_2.pt"}
    assert {path.name for path in (tmp_path / "c").glob("*.pt")} == names
    before = {f"checkpoint_{n}.pt" for n in range(1, 6)} | {"final_model.pt"}
    assert {path.name for path in (tmp_path / "c/earlier/1").glob("*.pt")} == before
    third = make(log_dir=tmp_path / "l", save_dir=tmp_path / "c")
    assert third.resume()
    assert third.iteration == 2
    third.learn(num_iterations=1)
    assert [line["step"] for line in lines(tmp_path / "l" / "metrics.jsonl")] == [10, 20, 30]
    # The first one, still alive, comes back: its run is no longer in the folder.
    first.learn(num_iterations=1)
    assert [line["step"] for line in lines(tmp_path / "l" / "metrics.jsonl")] == [60]
    assert [line["step"] for line in lines(tmp_path / "l/earlier/2/metrics.jsonl")] == [10, 20, 30]


def test_a_run_that_goes_back_keeps_what_it_leaves(tmp_path):
    runner = make(log_dir=tmp_path, save_interval=1)
    runner.learn(num_iterations=4)
    runner.load_checkpoint("checkpoint_2.pt")
    runner.learn(num_iterations=1)
    names = {path.name for path in (tmp_path / "checkpoints").glob("*.pt*")}
    assert names == {*(f"checkpoint_{n}.pt" for n in (1, 2, 3)), *(f"checkpoint_{n}.pt.set-aside" for n in (3, 4))}
    assert [line["step"] for line in lines(tmp_path / "metrics.jsonl")] == [10, 20, 30]
    assert [line["step"] for line in lines(tmp_path / "metrics.jsonl.set-aside")] == [10, 20, 30, 40]


# -- callbacks


def test_callbacks_take_the_runner_or_the_runner_and_statistics():
    seen, runner = [], make()
    runner.add_callback("post_rollout", lambda runner: seen.append(runner))
    runner.add_callback("post_rollout", lambda runner, stats: seen.append((runner, stats)))
    runner.add_callback("post_rollout", lambda *everything: seen.append(everything))
    runner.learn(num_iterations=1)
    assert seen == [runner, (runner, {"rollout/count": 0.0}), (runner, {"rollout/count": 0.0})]


def test_statistics_cannot_be_changed_by_a_callback():
    runner, seen = make(), []
    runner.add_callback("post_update", lambda _, given: given.clear())
    runner.add_callback("post_iteration", lambda _, given: seen.append("train/loss" in given))
    runner.learn(num_iterations=1)
    assert seen == [True]


@pytest.mark.parametrize("event", EVENTS)
def test_false_and_stop_training_end_training_with_a_reason(event):
    def ends(runner):
        return False

    def raises(runner):
        raise StopTraining("good enough")

    for callback, reason in ((ends, f"ends returned False at {event}"), (raises, "good enough")):
        runner = make()
        runner.add_callback(event, callback)
        result = runner.learn(num_iterations=9)
        assert (result.stopped_by, result.reason) == ("callback", reason)
        assert result.iterations == (0 if event == "pre_iteration" else 1)


def test_none_true_and_zero_do_not_end_training():
    runner = make()
    for answer in (None, True, 0):
        runner.add_callback("pre_update", lambda runner, answer=answer: answer)
    assert runner.learn(num_iterations=2).stopped_by == "goal"


def test_a_comparison_of_numpy_numbers_ends_training():
    runner = make()
    runner.add_callback("post_update", lambda runner, stats: np.mean([1.0, 2.0]) < 1.0)
    assert runner.learn(num_iterations=2).stopped_by == "callback"


def test_refusals_name_the_rule():
    runner = make()
    with pytest.raises(ValueError, match="unknown event 'post_epoch': choose one of pre_iteration"):
        runner.add_callback("post_epoch", print)
    with pytest.raises(TypeError, match="no statistics exist yet"):
        runner.add_callback("pre_iteration", lambda runner, stats: None)
    with pytest.raises(TypeError, match=r"\(runner\) or \(runner, stats\)"):
        runner.add_callback("post_iteration", lambda: None)
    with pytest.raises(ValueError, match="never comes"):
        make(Counter(collects=False)).add_callback("pre_rollout", print)


def test_callbacks_can_be_removed():
    runner, seen = make(), []
    callback = seen.append
    runner.add_callback("pre_update", callback)
    runner.learn(num_iterations=1)
    runner.remove_callback("pre_update", callback)
    runner.learn(num_iterations=1)
    assert seen == [runner]
    with pytest.raises(ValueError, match="is not a callback of event 'pre_update'"):
        runner.remove_callback("pre_update", callback)


def test_a_method_is_removed_as_it_was_added():
    class Watch:
        calls = 0

        def each_update(self, runner):
            self.calls += 1

    runner, watch = make(), Watch()
    runner.add_callback("pre_update", watch.each_update)
    runner.learn(num_iterations=1)
    runner.remove_callback("pre_update", watch.each_update)
    runner.learn(num_iterations=1)
    assert watch.calls == 1


def test_own_numbers_are_logged_with_the_iteration_they_belong_to(tmp_path):
    runner = make(log_dir=tmp_path)
    runner.add_callback("post_rollout", lambda r: r.log("mine/early", r.iteration))
    runner.add_callback("post_iteration", lambda r: r.log("mine/late", r.iteration))
    runner.learn(num_iterations=2)
    found = lines(tmp_path / "metrics.jsonl")
    assert [line.get("mine/early") for line in found] == [0.0, None, 1.0, None]
    assert [(line["step"], line.get("mine/late")) for line in found if "mine/late" in line] == [(10, 1.0), (20, 2.0)]


# -- sinks


def test_any_object_with_write_flush_and_close_is_a_sink(tmp_path):
    class Sink:
        def __init__(self):
            self.rows, self.flushed, self.closed = [], 0, False

        def write(self, step, metrics):
            self.rows.append((step, dict(metrics)))

        def flush(self):
            self.flushed += 1

        def close(self):
            self.closed = True

    sink = Sink()
    runner = make(sinks=[sink])
    runner.learn(num_iterations=1)
    runner.learn(num_iterations=1)
    assert [step for step, _ in sink.rows] == [10, 20]
    assert (sink.flushed, sink.closed) == (2, False)
    runner.close()
    assert sink.closed


def test_csv_has_a_column_per_metric_and_survives_a_resume(tmp_path):
    options = {"log_dir": tmp_path, "sinks": ["csv"], "save_interval": 2}
    runner = make(**options)
    runner.add_callback("pre_update", lambda r: r.log("late", 5) if r.iteration == 2 else None)
    runner.learn(num_iterations=3)
    again = make(**options)
    again.resume()
    again.learn(num_iterations=2)
    rows = (tmp_path / "metrics.csv").read_text().splitlines()
    assert rows[0].startswith("step,rollout/count,train/loss")
    assert [row.split(",")[0] for row in rows[1:]] == ["10", "20", "30", "40"]


def test_sinks_that_do_not_exist_are_named(tmp_path):
    with pytest.raises(ValueError, match="sink 'excel' is not known"):
        make(log_dir=tmp_path, sinks=["excel"]).learn(num_iterations=1)
    with pytest.raises(ConfigurationError, match=r"sinks='csv' is one name.*sinks=\['csv'\]"):
        make(log_dir=tmp_path, sinks="csv")


def test_ctrl_c_saves_and_then_raises(tmp_path):
    runner = make(save_dir=tmp_path, raise_interrupt=True)
    runner.add_callback("pre_update", lambda r: os.kill(os.getpid(), signal.SIGINT) if r.iteration == 2 else None)
    with pytest.raises(KeyboardInterrupt, match="stopped by SIGINT, at iteration 3"):
        runner.learn(num_iterations=9)
    again = make(save_dir=tmp_path)
    assert again.resume()
    assert again.iteration == 3


def test_a_resumed_run_knows_its_latest_evaluation(tmp_path):
    options = {"save_dir": tmp_path, "save_interval": 1, "eval_interval": 2}
    make(**options).learn(num_iterations=2)
    resumed = make(**options)
    assert resumed.resume()
    resumed.learn(num_iterations=1)
    [third] = tmp_path.glob("checkpoint_3.pt")
    assert load_checkpoint(third, Schema(name=Counter.name, version=1)).metrics == {"eval/mean_reward": 2.0}
