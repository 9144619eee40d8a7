"""A second response to a request, late and over the same connection, is taken for no other's."""

import pytest
from late_server import LateServer, Repeats

from judgebench.models.contract import Backend, Message, Request
from judgebench.models.litellm_backend import LiteLLM
from judgebench.models.openai_compatible import OpenAICompatible
from judgebench.models.settings import BackendSettings
from judgebench.models.transport import Backoff

ANSWERS, CONCURRENCY = 300, 8
QUICK = Backoff(first=0.001, longest=0.05)
LATE_S = [0.0, 0.002, 0.015]  # with the first, before the next is written, and while it is answered


def openai_compatible(server: LateServer) -> Backend:
    settings = BackendSettings(base_url=server.base_url, concurrency=CONCURRENCY)
    return OpenAICompatible("loopback", settings, QUICK)


def litellm(server: LateServer) -> Backend:
    settings = BackendSettings(base_url=server.base_url, concurrency=CONCURRENCY)
    return LiteLLM("openai/loopback", settings, QUICK)


def wrong(backend: Backend, answers: int = ANSWERS) -> list[str]:
    """The keys of the requests whose reply is another's, or none."""
    requests = (Request(str(n), (Message("user", f"of {n}"),)) for n in range(answers))
    replies = list(backend.complete(requests))
    assert len(replies) == answers
    return [reply.key for reply in replies if reply.text != f"of {reply.key}"]


@pytest.mark.parametrize("late_s", LATE_S)
@pytest.mark.parametrize("repeats", ["", "header", "id"])
def test_no_reply_of_300_is_another_requests(late_s: float, repeats: Repeats) -> None:
    with LateServer(late_s, repeats) as server:
        assert wrong(openai_compatible(server)) == []


@pytest.mark.parametrize("repeats", ["header", "id"])
def test_connections_are_shared_where_replies_name_their_request(repeats: Repeats) -> None:
    with LateServer(None, repeats) as server:
        assert wrong(openai_compatible(server)) == []
        assert server.connections <= 3 * CONCURRENCY


def test_elsewhere_each_request_has_its_own() -> None:
    with LateServer(None) as server:
        assert wrong(openai_compatible(server)) == []
        assert server.connections == ANSWERS


def test_an_endpoint_that_no_longer_names_requests_is_asked_over_their_own_connections() -> None:
    with LateServer(0.015, "header", until=100) as server:
        assert wrong(openai_compatible(server)) == []
        assert server.connections > ANSWERS / 2


@pytest.mark.parametrize("late_s", LATE_S)
def test_nor_is_one_that_litellm_gives(late_s: float) -> None:
    with LateServer(late_s) as server:
        assert wrong(litellm(server), 100) == []
