import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebench.models import transport as module
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import RateLimiter


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


def limiter(**settings: object) -> RateLimiter:
    return RateLimiter("m at http://x/v1", BackendSettings.model_validate(settings))


def test_nothing_starts_while_the_endpoint_asked_to_wait(clock: Clock) -> None:
    limits = limiter()
    limits.pause(7)
    limits.pause(3)  # a shorter one does not end the longer
    assert limits.start(0) == 7
    clock.now += 7
    assert limits.start(0) == 0


def test_requests_per_minute_spaces_the_starts(clock: Clock) -> None:
    limits = limiter(requests_per_minute=30)
    assert limits.start(0) == 0
    assert limits.start(0) == pytest.approx(2, abs=0.05)
    clock.now += 2
    assert limits.start(0) == 0


def test_tokens_per_minute_spaces_by_those_expected_and_then_by_those_used(clock: Clock) -> None:
    limits = limiter(tokens_per_minute=600)
    assert limits.start(100) == 0
    assert limits.start(100) == pytest.approx(10, abs=0.05)
    limits.answered(100, 40)  # it took less
    assert limits.start(100) == pytest.approx(4, abs=0.05)
    limits.answered(100, 160)  # it took more
    assert limits.start(100) == pytest.approx(10, abs=0.05)


@given(st.lists(st.tuples(st.integers(0, 10**8), st.floats(0, 30)), max_size=20))
def test_tokens_beyond_those_expected_cost_a_minute_at_most(
    answers: list[tuple[int, float]],
) -> None:
    limits = limiter(tokens_per_minute=600)
    for n_tokens, pause in answers:
        limits.answered(10, n_tokens)
        assert limits.start(10) <= 60
        limits.pause(pause)


def test_a_long_wait_is_reported_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    limits = limiter()
    limits.report(5, "HTTP 429: soon")
    for seconds in (300, 310, 320):
        limits.report(seconds, "HTTP 429: later")
    clock.now += 400
    limits.report(60, "HTTP 429: again")
    assert caplog.messages == [
        "m at http://x/v1: waiting for 300 s (HTTP 429: later)",
        "m at http://x/v1: waiting for 60 s (HTTP 429: again)",
    ]
