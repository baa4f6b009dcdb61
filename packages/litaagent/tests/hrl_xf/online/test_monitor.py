import pytest

from litaagent_std.hrl_xf.online.config import MonitorConfig
from litaagent_std.hrl_xf.online.monitor import Monitor, WindowStatistics


def statistics(gain, breach=0.0):
    return WindowStatistics(gain, 0.01, 1.0, breach, 0.0, 0.0)


def test_a_window_that_is_worse_rolls_back_and_a_plateau_stops():
    monitor = Monitor(MonitorConfig(window=2, errors=2.0, patience=5, breach_rate=0.05))
    assert [monitor.update(statistics(gain)) for gain in (0.0, 0.1, 0.1)] == ["continue"] * 3
    assert monitor.best.gain == pytest.approx(0.1)
    assert [monitor.update(statistics(gain)) for gain in (0.1, 0.0)] == ["continue", "roll back"]
    assert monitor.update(statistics(0.09)) == "continue"  # a new window has begun
    assert monitor.update(statistics(0.1, breach=0.3)) == "roll back"
    assert monitor.update(statistics(0.09)) == "stop"  # patience counts through roll-backs
