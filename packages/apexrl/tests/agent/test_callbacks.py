import pytest

from apexrl.agent.callbacks import EVENTS, Callbacks, StopTraining


def test_callbacks_take_the_runner_or_the_runner_and_statistics():
    seen, callbacks = [], Callbacks()
    callbacks.add("post_iteration", lambda runner: seen.append(runner))
    callbacks.add("post_iteration", lambda runner, stats: seen.append((runner, stats)))
    callbacks.add("post_iteration", lambda *everything: seen.append(everything))
    assert callbacks.emit("post_iteration", "runner", {"x": 1.0}) is None
    assert seen == ["runner", ("runner", {"x": 1.0}), ("runner", {"x": 1.0})]


def test_statistics_cannot_be_changed_by_a_callback():
    callbacks, stats = Callbacks(), {"x": 1.0}
    callbacks.add("post_update", lambda _, given: given.clear())
    callbacks.emit("post_update", None, stats)
    assert stats == {"x": 1.0}


@pytest.mark.parametrize("event", EVENTS)
def test_false_and_stop_training_end_training_with_a_reason(event):
    def ends(runner):
        return False

    def raises(runner):
        raise StopTraining("good enough")

    for callback, reason in ((ends, "ends returned False"), (raises, "good enough")):
        callbacks = Callbacks()
        callbacks.add(event, callback)
        assert reason in callbacks.emit(event, None, {})


def test_none_true_and_zero_do_not_end_training():
    callbacks = Callbacks()
    for answer in (None, True, 0):
        callbacks.add("pre_update", lambda runner, answer=answer: answer)
    assert callbacks.emit("pre_update", None) is None


def test_errors_are_raised_as_they_are():
    callbacks = Callbacks()
    callbacks.add("pre_rollout", lambda runner: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        callbacks.emit("pre_rollout", None)


def test_refusals_name_the_rule():
    callbacks = Callbacks()
    with pytest.raises(ValueError, match="unknown event 'post_epoch': choose one of pre_iteration"):
        callbacks.add("post_epoch", print)
    with pytest.raises(TypeError, match="no statistics exist yet"):
        callbacks.add("pre_iteration", lambda runner, stats: None)
    with pytest.raises(TypeError, match=r"\(runner\) or \(runner, stats\)"):
        callbacks.add("post_iteration", lambda: None)
