import threading

import pytest
from loopback import PATIENCE, until
from scripted_judges import Listener

from judgebench.errors import RunError
from judgebench.progress import NoProgress
from judgebench.runs.judging import Stop, run_lanes


def nothing() -> None: ...


def failing(error: BaseException):
    def work() -> None:
        raise error

    return work


def test_lanes_run_side_by_side() -> None:
    meeting = threading.Barrier(2, timeout=PATIENCE)
    run_lanes({"a": meeting.wait, "b": meeting.wait}, Stop(), NoProgress(), nothing)  # type: ignore[dict-item]


def test_a_lane_that_fails_is_told_at_once_and_the_others_go_on() -> None:
    listener, done = Listener(), []

    def patient() -> None:
        assert until(lambda: bool(listener.heard))
        done.append(True)

    lanes = {"a": failing(RunError("the endpoint is down")), "b": patient}
    with pytest.raises(RunError, match="endpoint is down"):
        run_lanes(lanes, Stop(), listener, nothing)
    assert listener.heard == ["a stopped: the endpoint is down"]
    assert done == [True]


def test_an_error_that_is_none_of_ours_stops_the_others_softly() -> None:
    stop = Stop()

    def drawing() -> None:
        assert until(lambda: stop.wanted)

    with pytest.raises(ZeroDivisionError):
        run_lanes({"a": failing(ZeroDivisionError()), "b": drawing}, stop, NoProgress(), nothing)


def test_a_stop_winds_down_what_waits() -> None:
    stop, wound_down = Stop(), threading.Event()

    def waiting() -> None:
        stop()
        assert wound_down.wait(PATIENCE)

    run_lanes({"a": waiting}, stop, NoProgress(), wound_down.set)
