"""Likelihoods from servers that list the tokens of a prompt, and from those that get it wrong."""

import pytest
from loopback import Loopback, raw, status
from prompt_server import Completions, along, server

from judgebench.errors import EndpointDown, RunError, SetupError
from judgebench.models.contract import Draws, Message, Weigher, weigher_of
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import Waits

ASKED = (Message("user", "ab"),)


def weigher(at: Loopback) -> Weigher:
    settings = BackendSettings(base_url=at.base_url, max_retries=2, down_for_s=0.2)
    return weigher_of(OpenAICompatible("m", settings, Waits(0.01, 0.02)), "openai-compatible:m")()


def test_a_server_that_is_right_is_used() -> None:
    with Completions(server()) as at:
        alone, behind = weigher(at).weigh([("", "ab b"), ("ba", "ab")])
    assert alone.log_p == pytest.approx(along("^ab b"))
    assert behind.log_p == pytest.approx(along("baab")[-2:])


def test_behind_a_chat_the_answers_turn_is_gone_on_with() -> None:
    with Completions(server()) as at:
        (one,) = weigher(at).weigh([(ASKED, "ab")])
    assert one.log_p == pytest.approx(along("<ab>ab")[-2:])


def test_a_server_without_a_first_token_weighs_only_behind_a_text() -> None:
    with Completions(server(begins=False)) as at:
        (one,) = weigher(at).weigh([("ba", "ab")])
        assert one.log_p == pytest.approx(along("baab")[-2:])
        with pytest.raises(SetupError, match="no token stands before a text"):
            weigher(at).weigh([("", "ab")])


WRONG = {
    "it lists no tokens of the prompt": server(lists=False),
    "in a prompt and": server(change=lambda rows: [(t, -0.5) for t, _ in rows]),
    "what it lists are no log-probabilities": server(
        change=lambda rows: [(t, 0.5) for t, _ in rows]
    ),
    "what it lists are no": server(change=lambda rows: [(t, None) for t, _ in rows]),
    "no token stands alike": server(change=lambda rows: [(f"{t}{len(rows)}", p) for t, p in rows]),
    "it lists no probabilities of a reply": lambda body, count: raw({"choices": [{}]}),
    "HTTP 400: no such thing": lambda body, count: status(400, "no such thing"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_server_that_is_wrong_is_refused_with_the_reason(why: str) -> None:
    with Completions(WRONG[why]) as at, pytest.raises(SetupError) as refused:
        weigher(at).weigh([("ba", "ab")])
    assert "this endpoint does not say how likely a given text is" in str(refused.value)
    assert why in str(refused.value)


def test_faults_are_retried_and_then_end_the_work() -> None:
    right = server()
    with Completions(lambda body, n: right(body, n) if n % 3 else status(503)) as at:
        (one,) = weigher(at).weigh([("ba", "ab")])
        assert one.log_p
    with Completions(right) as at:
        found = weigher(at)
        found.weigh([("ba", "ab")])
        at.script = lambda body, n: status(500)
        with pytest.raises((RunError, EndpointDown)):
            found.weigh([("ba", "ab")])


def test_a_fault_in_one_text_is_no_reason_to_have_no_score() -> None:
    right, busy = server(), status(408, "come again")
    with Completions(lambda body, n: busy if len(body["prompt"]) > 99 else right(body, n)) as at:
        found = weigher(at)
        found.weigh([("b", "ab")])
        with pytest.raises((RunError, EndpointDown), match="HTTP 408: come again"):
            found.weigh([("b", "ab" * 60), ("b", "ab")])


def test_a_text_that_is_too_long_changes_no_neighbour() -> None:
    right = server()
    over = status(400, "maximum context length is 8 tokens")
    with Completions(lambda body, n: over if len(body["prompt"]) > 99 else right(body, n)) as at:
        long, short = weigher(at).weigh([("b", "ab" * 60), ("b", "ab")])
    assert long.reason == "HTTP 400: maximum context length is 8 tokens; test"
    assert short.log_p == pytest.approx(along("bab")[-2:])


def test_completions_are_not_weighed_by_a_server() -> None:
    with (
        Completions(server()) as at,
        pytest.raises(SetupError, match="completions are weighed by a model in this process"),
    ):
        weigher(at).draw("b", ["ab"], Draws(2, 8, 1.0, 1.0, 1, 0))
