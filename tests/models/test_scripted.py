from dataclasses import replace
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.models.contract import LabelField, LabelsAsked, Message, Reply, Request
from judgebench.models.scripted import Scripted


def ask(key: str, text: str) -> Request:
    return Request(key, (Message("system", "Judge."), Message("user", text)))


def script(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "replies.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_callable_replies_with_text_or_a_whole_reply() -> None:
    def reply(request: Request) -> Reply | str:
        if request.key == "b":
            return Reply("b", "", "refused", error="no")
        return request.messages[-1].content.upper()

    backend = Scripted(reply)
    one, two = backend.complete([ask("a", "x"), ask("b", "y")])
    assert (one.key, one.text, one.finish, one.usage.calls) == ("a", "X", "stop", 1)
    assert (two.key, two.finish) == ("b", "refused")
    assert backend.calls == 2


def test_the_first_line_that_fits_answers(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        '{"key": "a", "text": "by key"}',
        "",
        '{"pattern": "bleach|poison", "text": {"harm": "some"}}',
        '{"pattern": "^long", "finish": "too_long", "error": "9000 tokens"}',
        '{"text": "anything else"}',
    )
    requests = [ask("a", "bleach"), ask("b", "drink bleach"), ask("c", "x"), ask("d", "long")]
    replies = {r.key: r for r in Scripted.from_file(path).complete(requests)}
    assert replies["a"].text == "by key"
    assert replies["b"].text == '{"harm": "some"}'
    assert replies["c"].text == "anything else"
    assert replies["d"].text == "anything else"


def test_finish_and_error_come_from_the_line(tmp_path: Path) -> None:
    path = script(tmp_path, '{"finish": "too_long", "error": "9000 tokens"}')
    (reply,) = Scripted.from_file(path).complete([ask("a", "x")])
    assert (reply.finish, reply.error, reply.text) == ("too_long", "9000 tokens", "")


def test_a_request_that_nothing_fits_fails(tmp_path: Path) -> None:
    path = script(tmp_path, '{"key": "a", "text": "x"}')
    (reply,) = Scripted.from_file(path).complete([ask("b", "x")])
    assert reply.finish == "failed"
    assert "no scripted reply" in reply.error


def test_every_bad_line_is_told(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        "{",
        '{"text": "fine"}',
        '{"txt": "typo"}',
        '{"pattern": "("}',
        '{"finish": "done"}',
    )
    with pytest.raises(SetupError) as caught:
        Scripted.from_file(path)
    assert [p.line for p in caught.value.problems] == [1, 3, 4, 5]
    assert {p.file for p in caught.value.problems} == {str(path)}


def test_log_probabilities_of_a_line_are_told_where_they_are_asked_for(tmp_path: Path) -> None:
    line = '{"text": {"harm": "a"}, "log_probabilities": {"harm": {"a": -0.105, "b": -2.303}}}'
    asked = LabelsAsked((LabelField("harm", ("a", "b")),), "chained")
    requests = [replace(ask("with", "x"), labels_asked=asked), ask("without", "x")]
    given, none = Scripted.from_file(script(tmp_path, line)).complete(requests)
    assert given.log_probabilities == {"harm": {"a": -0.105, "b": -2.303}}
    assert none.log_probabilities is None


def test_log_probabilities_that_are_none_are_told(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        '{"log_probabilities": {"harm": {"a": 0.5}}}',
        '{"log_probabilities": {"harm": {"a": -0.1, "b": -0.2}}}',
        '{"log_probabilities": {"harm": ["a"]}}',
        '{"log_probabilities": {"harm": {"a": 0}}}',
    )
    with pytest.raises(SetupError, match=r"come to 1\.724 and not to 1") as caught:
        Scripted.from_file(path)
    assert [p.line for p in caught.value.problems] == [1, 2, 3]


def test_description_follows_the_content(tmp_path: Path) -> None:
    first = Scripted.from_file(script(tmp_path, '{"text": "x"}')).describe()
    again = Scripted.from_file(script(tmp_path, '{"text": "x"}')).describe()
    other = Scripted.from_file(script(tmp_path, '{"text": "y"}')).describe()
    assert first == again != other
