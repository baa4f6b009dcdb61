import pytest

from apexrl.execution import Attempt, Failure, FailureKind, RunReport, TaskFailedError, TaskReport, TaskResult
from apexrl.execution.report import TROUBLED_KEPT

DIED = Failure(kind=FailureKind.WORKER_DIED, message="killed by SIGKILL")


def test_a_report_counts_and_says_what_was_retried_and_why():
    report = RunReport()
    report.add(TaskReport(0, "", (Attempt(1.0, 0),)))
    report.add(TaskReport(1, "world 7", (Attempt(0.5, 0, DIED), Attempt(2.0, 1))))
    report.add(TaskReport(2, "", (Attempt(0.25, 0, DIED), Attempt(0.25, 1, DIED))))
    assert (report.finished, report.succeeded, report.failed, report.retried) == (3, 2, 1, 2)
    assert (report.seconds, report.slowest) == (4.0, 2.0)
    assert report.summary().splitlines() == [
        "3 tasks: 2 succeeded, 1 failed, 2 retried; 4.00 s in tasks, slowest 2.00 s",
        "  task 1 (world 7): worker died: killed by SIGKILL after 0.500 s; succeeded after 2.000 s",
        "  task 2: worker died: killed by SIGKILL after 0.250 s; worker died: killed by SIGKILL after 0.250 s",
    ]


def test_a_report_of_endless_failures_stays_small():
    report = RunReport()
    for index in range(TROUBLED_KEPT + 5):
        report.add(TaskReport(index, "", (Attempt(0.0, 0, DIED),)))
    assert len(report.troubled) == TROUBLED_KEPT
    assert report.summary().endswith("and 5 more")


def test_a_failed_result_gives_its_reason_instead_of_a_value():
    assert TaskResult(3, "", None).unwrap() is None
    with pytest.raises(TaskFailedError, match=r"task 3 \(world 7\) worker died: killed by SIGKILL"):
        TaskResult(3, "world 7", None, DIED).unwrap()
