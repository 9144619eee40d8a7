import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    return Pace("m at http://x/v1", BackendSettings.model_validate(settings))


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
