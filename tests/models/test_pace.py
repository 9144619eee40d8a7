import logging
import math
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.errors import EndpointDown
from judgebench.models import pace as module
from judgebench.models.pace import Pace
from judgebench.models.settings import BackendSettings


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "monotonic", clock)
    return clock


def pace(**settings: object) -> Pace:
    return Pace("m at http://x/v1", BackendSettings.model_validate(settings), 1.0, 8.0)


def fail(pace: Pace, clock: Clock, times: int) -> None:
    """So many calls fail in turn, each call again after a hundred others."""
    for _ in range(times):
        pace.failed(next(CALLS) % 100, clock.now, "HTTP 500: broken")


CALLS = count()


def test_no_more_start_than_the_limit_lets(clock: Clock) -> None:
    paced = pace(concurrency=3)
    assert [paced.start(in_flight, 0) for in_flight in range(4)] == [0, 0, 0, math.inf]


def test_calls_in_flight_together_halve_the_limit_once(clock: Clock) -> None:
    paced = pace(concurrency=64)
    began = clock.now
    clock.now += 1
    for in_flight in range(64, 0, -1):
        paced.limited(began, in_flight)
    assert paced.limit == 32
    began = clock.now
    clock.now += 1
    paced.limited(began, 32)
    assert paced.limit == 16


def test_a_limit_that_was_never_reached_is_halved_from_what_was_in_flight(clock: Clock) -> None:
    paced = pace(concurrency=1000)
    paced.limited(clock.now, 10)
    assert paced.limit == 5


def test_a_round_of_answers_adds_one(clock: Clock) -> None:
    paced = pace(concurrency=64)
    paced.limited(clock.now, 16)
    for _ in range(9):
        paced.answered(0, None)
    assert paced.limit == 9


@given(st.lists(st.booleans(), max_size=200), st.integers(1, 50))
def test_the_limit_stays_between_one_and_the_concurrency(
    answers: list[bool], concurrency: int
) -> None:
    paced = pace(concurrency=concurrency)
    for answered in answers:
        if answered:
            paced.answered(0, None)
        else:
            paced.limited(math.inf, paced.limit)
        assert 1 <= paced.limit <= concurrency


def test_nothing_starts_while_the_endpoint_asked_to_wait(clock: Clock) -> None:
    paced = pace()
    paced.pause(7)
    paced.pause(3)  # a shorter one does not end the longer
    assert paced.start(0, 0) == 7
    clock.now += 7
    assert paced.start(0, 0) == 0


def test_requests_per_minute_spaces_the_starts(clock: Clock) -> None:
    paced = pace(requests_per_minute=30)
    assert paced.start(0, 0) == 0
    assert paced.start(1, 0) == 2
    clock.now += 2
    assert paced.start(1, 0) == 0


def test_tokens_per_minute_spaces_by_what_is_expected_and_then_by_what_was_used(
    clock: Clock,
) -> None:
    paced = pace(tokens_per_minute=600)
    assert paced.start(0, 100) == 0
    assert paced.start(1, 100) == 10
    paced.answered(100, 40)  # it took less
    assert paced.start(0, 100) == 4
    paced.answered(100, 160)  # it took more
    assert paced.start(0, 100) == 10
    paced.answered(100, None)  # it did not say
    assert paced.start(0, 100) == 10


@pytest.mark.parametrize(
    ("concurrency", "retries", "opens_at"),
    [(64, 5, 128), (16, 1, 17), (4, 5, 8), (4, 0, 4), (1, 5, 24), (1, 0, 4)],
)
def test_the_circuit_opens_after_failures_in_a_row(
    clock: Clock, concurrency: int, retries: int, opens_at: int
) -> None:
    paced = pace(concurrency=concurrency, max_retries=retries)
    fail(paced, clock, opens_at - 1)
    assert not paced.is_open
    paced.answered(0, None)
    fail(paced, clock, opens_at - 1)
    assert not paced.is_open
    fail(paced, clock, 1)
    assert paced.is_open


def test_the_last_few_requests_that_always_fail_do_not_open_it(clock: Clock) -> None:
    paced = pace(concurrency=16, max_retries=5)
    for _ in range(100):
        for call in range(3):
            paced.failed(call, clock.now, "HTTP 500: this very request")
    assert not paced.is_open


def test_a_rate_limit_is_no_failure(clock: Clock) -> None:
    paced = pace(concurrency=1, max_retries=0)
    for _ in range(100):
        fail(paced, clock, 1)
        paced.limited(clock.now, 1)
    assert not paced.is_open


def test_an_open_circuit_lets_one_probe_through_at_growing_intervals(clock: Clock) -> None:
    paced = pace(concurrency=1, max_retries=0, timeout_s=60, down_for_s=1000)
    fail(paced, clock, 4)
    intervals = []
    for _ in range(6):
        intervals.append(paced.start(0, 0))
        clock.now += intervals[-1]
        assert paced.start(0, 0) == 0
        assert paced.start(0, 0) > 60  # until the probe has failed, or is taken for lost
        fail(paced, clock, 1)
    assert intervals == [1, 2, 4, 8, 8, 8]


def test_calls_that_began_before_the_circuit_opened_are_no_probes(clock: Clock) -> None:
    paced = pace(concurrency=1, max_retries=0)
    began = clock.now
    clock.now += 1
    fail(paced, clock, 4)
    for _ in range(10):
        paced.failed(0, began, "late")
    assert paced.start(0, 0) == 1


def test_an_answer_closes_the_circuit(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    paced = pace(concurrency=8)
    with caplog.at_level(logging.WARNING, "judgebench.models"):
        fail(paced, clock, 16)
        paced.answered(0, None)
    assert not paced.is_open
    assert [paced.start(i, 0) for i in range(3)] == [0, 0, 0]
    opened, closed = caplog.messages
    assert "m at http://x/v1 failed 16 times in a row (HTTP 500: broken)" in opened
    assert "300 s" in opened
    assert closed == "m at http://x/v1 answers again"


def test_an_endpoint_that_stays_silent_is_down(clock: Clock) -> None:
    paced = pace(concurrency=1, max_retries=0, down_for_s=20)
    fail(paced, clock, 4)
    clock.now += 19
    assert paced.start(0, 0) == 0
    assert paced.start(0, 0) == 1  # never longer than until then
    clock.now += 1
    with pytest.raises(EndpointDown, match=r"m at http://x/v1 has answered nothing for 20 s"):
        paced.start(0, 0)


def test_a_long_wait_is_reported_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    paced = pace(concurrency=4, tokens_per_minute=600)
    paced.pause(5)
    paced.tell(5, "HTTP 429: soon")
    for _ in range(4):
        paced.tell(300, "HTTP 429: later")
    paced.answered(0, None)
    paced.tell(600, "HTTP 429: on and on", always=False)  # others are answered
    assert paced.start(0, 0) == 5
    clock.now += 400
    assert paced.start(0, 1000) == 0
    for _ in range(4):
        assert paced.start(0, 1000) == 100
    messages = [message.split(" until ") for message in caplog.messages]
    assert [begin for begin, _ in messages] == ["m at http://x/v1: waiting"] * 2
    assert [end[8:] for _, end in messages] == [" (HTTP 429: later)", " (tokens_per_minute: 600)"]


@given(st.lists(st.tuples(st.integers(0, 10**8), st.floats(0, 30)), max_size=20))
def test_tokens_beyond_those_expected_cost_a_minute_at_most(
    answers: list[tuple[int, float]],
) -> None:
    paced = pace(tokens_per_minute=600)
    for tokens, pause in answers:
        paced.answered(10, tokens)
        assert paced.start(0, 10) <= 60
        paced.pause(pause)
