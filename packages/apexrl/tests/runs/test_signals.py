import os
import signal
import threading

import pytest

from apexrl.runs.signals import stop_on_signals


@pytest.fixture
def _not_under_nohup():
    """The tests themselves may have been started with SIGHUP ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.usefixtures("_not_under_nohup")
def test_the_first_signal_is_a_request(number, code, capfd):
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.requested
        assert stop.exit_code == 0
        os.kill(os.getpid(), number)
        assert stop.requested
        assert stop.signal == number

    assert stop.exit_code == code
    assert signal.getsignal(number) is before
    assert f"{number.name}: saving" in capfd.readouterr().err


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_the_second_signal_interrupts_at_once(number, kind):
    before = signal.getsignal(number)

    def signalled_twice() -> None:
        with stop_on_signals():
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), number)

    with pytest.raises(kind):
        signalled_twice()

    assert signal.getsignal(number) is before


def test_nohup_holds():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_callback_may_ask_too():
    with stop_on_signals() as stop:
        stop.request()

    assert stop.requested
    assert stop.exit_code == 0


def test_outside_the_main_thread_handlers_stay_as_they_are():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work() -> None:
        with stop_on_signals() as stop:
            stop.request()
            seen.append((stop.requested, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [(True, before)]
