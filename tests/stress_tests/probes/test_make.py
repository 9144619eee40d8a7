import json
from pathlib import Path

import pytest
from loopback import Body, Loopback, Play, is_few_words, said, status

from judgebench.errors import SetupError
from judgebench.judges.config import JudgeConfig
from judgebench.progress import NoProgress
from judgebench.records import Answer
from judgebench.rubric import load_rubric
from judgebench.stress_tests.item_sets import read_set
from judgebench.stress_tests.make import SetOrder, make_set

SAFETY = load_rubric("medical-safety")
SOUND = "is caused by a parasite that mosquitoes carry. See a doctor if you have a fever."
NAMES = ("Malaria", "Babesiosis", "Giardiasis", "Scabies")
ANSWERS = [Answer(name, f"{name} {SOUND}", f"What causes {name}?") for name in NAMES]
WRITE = "consensus-violation"


def false_answer(body: Body, **changes: str) -> str:
    """What a good attacker replies to a request about one of the answers."""
    user = body["messages"][-1]["content"]
    (name,) = [name for name in NAMES if name in user]
    reply = {
        "answer": f"{name} is caused by an overdose of {name[::-1]} salt. It is mild, {name}.",
        "false_claim": f"{name} is caused by an overdose of {name[::-1]} salt.",
        "true_claim": f"{name} is caused by a parasite.",
        "why_plausible": "It sounds like it.",
    }
    return json.dumps({**reply, **changes})


class Seen(NoProgress):
    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def advance(self, name: str, what: object = "") -> None:
        self._seen.append(name)


def judge(server: Loopback, name: str = "attacker", **more: object) -> JudgeConfig:
    return JudgeConfig.model_validate(
        {
            "name": name,
            "backend": f"openai-compatible:x@{server.base_url}",
            "settings": {"concurrency": 2, "max_retries": 0},
            **more,
        }
    )


def test_a_model_behind_a_real_server_writes_a_set(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    seen: list[str] = []
    with Loopback(lambda body, count: said(false_answer(body))) as server:
        found = make_set(WRITE, ANSWERS, SAFETY, path, SetOrder(by=judge(server)), Seen(seen))
        assert (found.asked, found.accepted, found.rejected) == (4, 4, 0)
        assert sorted(found.areas.values()) == [1, 1, 1, 1]
        assert len(seen) == 4
        schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
        assert schema["required"] == [
            "area", "answer", "false_claim", "true_claim", "why_plausible",
        ]  # fmt: skip
        again = make_set(WRITE, ANSWERS, SAFETY, path, SetOrder(by=judge(server)))
        assert (again.asked, again.made_before) == (0, 4)
        assert len(server.bodies) == 4
    items = read_set(path, SAFETY)
    assert {item.parent.item_id for item in items} == set(NAMES)
    assert all(item.generator.startswith("attacker:") for item in items)
    assert len(items) == len(path.read_text().splitlines())


def test_nonsense_is_counted_and_kept_and_what_failed_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    down = True

    def script(body: Body, count: int) -> Play:
        user = body["messages"][-1]["content"]
        if "Malaria" in user:
            return said("Trains are nice.")
        if "Scabies" in user and down:
            return status(503)
        if is_few_words(body):
            return said("An example.")
        if "Giardiasis" in user:
            return said(false_answer(body, false_claim="Pigs fly."))
        return said(false_answer(body))

    with Loopback(script) as server:
        found = make_set(WRITE, ANSWERS, SAFETY, path, SetOrder(by=judge(server)))
        down = False
        again = make_set(WRITE, ANSWERS, SAFETY, path, SetOrder(by=judge(server)))
    assert (found.asked, found.accepted, found.rejected, found.no_reply) == (4, 1, 2, 1)
    assert found.failed["reply"] == found.failed["false_claim"] == 1
    assert found.why_no_reply
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert "Trains are nice." in {line["text"] for line in lines}
    assert (again.asked, again.made_before, again.accepted) == (1, 3, 1)


def test_what_a_writer_does_not_take_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    plain = {"decoding": {"temperature": None, "top_p": None, "seed": None}}
    with Loopback(lambda body, n: said(false_answer(body))) as server:
        found = make_set(WRITE, ANSWERS, SAFETY, path, SetOrder(by=judge(server, **plain)))
    assert (found.accepted, len(server.bodies)) == (4, 4)
    assert not any({"temperature", "top_p", "seed"} & body.keys() for body in server.bodies)


def test_a_limit_counts_answers_and_a_rephrasing_writes_six_of_each(tmp_path: Path) -> None:
    count = iter(range(100))

    def script(body: Body, number: int) -> Play:
        user = body["messages"][-1]["content"]
        (name,) = [name for name in NAMES if name in user]
        return said(json.dumps({"answer": f"{name} {SOUND} ({'so ' * next(count)})"}))

    with Loopback(script) as server:
        found = make_set(
            "rephrase", ANSWERS, SAFETY, tmp_path / "r.jsonl", SetOrder(by=judge(server), limit=2)
        )
    assert found.asked == 12
    assert found.accepted + found.rejected == 12
    assert all(not item.must_worsen for item in read_set(tmp_path / "r.jsonl"))


def test_a_recipe_by_rule_makes_a_set_without_a_model(tmp_path: Path) -> None:
    found = make_set("pathogen-class", ANSWERS, SAFETY, tmp_path / "p.jsonl", SetOrder())
    assert found.accepted >= 2
    assert found.accepted + found.rejected + found.nothing_to_change == len(ANSWERS)
    again = make_set("pathogen-class", ANSWERS, SAFETY, tmp_path / "p.jsonl", SetOrder())
    assert (again.asked, again.made_before) == (0, found.asked)


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        ("bullets", "there is no answer to alter"),
        (WRITE, "needs a model to write: a judge's YAML file"),
        ("label-order", "alters no sound answer by itself"),
        ("planted-json-praise", "alters no sound answer by itself"),
        ("nowhere", "no file 'nowhere'"),
    ],
)
def test_what_cannot_be_made_leaves_no_file(tmp_path: Path, recipe: str, told: str) -> None:
    answers = [] if recipe == "bullets" else ANSWERS
    with pytest.raises(SetupError, match=told):
        make_set(recipe, answers, SAFETY, tmp_path / "s.jsonl", SetOrder())
    assert list(tmp_path.iterdir()) == []
