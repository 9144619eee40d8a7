"""Runs of judges that are shown several answers at once, or that judge a part of the rows."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from aligned import align_run
from hypothesis import given
from hypothesis import strategies as st
from loopback import Body, Loopback, Play
from loopback import said as said_by
from side_by_side import (
    MIXED,
    PREFERENCE,
    asked,
    bench_of,
    by_content,
    criteria,
    judge,
    pair,
    quality,
    reply,
    said,
    shown,
)

from judgebench.data.conversation import oriented
from judgebench.errors import SetupError
from judgebench.judges.config import JuryConfig
from judgebench.judges.control import control_judges, usual_controls
from judgebench.judges.llm import LLMJudge, judges_from
from judgebench.models.contract import Request
from judgebench.records import Answer, HumanLabel, Status, Usage, Verdict
from judgebench.rubric import Rubric
from judgebench.runs.bench import Extension
from judgebench.runs.folder import RunFolder
from judgebench.runs.forecast import forecast
from judgebench.runs.judging import RequestGroups
from judgebench.runs.load import load_bench
from judgebench.runs.open import open_folder
from judgebench.runs.run_bench import run
from judgebench.studies.answers import indexed

SEVEN = [said(i, 1 + i % 5) for i in range(7)]
ALONE = Answer("b", "Other, quality 2.", "Fever?")


def labels_of(folder: RunFolder, name: str = "m") -> dict[str, str]:
    return {v.item_id: dict(v.labels).get("score", "") for v in folder.verdicts(name)}


def lists_of(judge: LLMJudge) -> list[frozenset[str]]:
    return [frozenset(shown(request)) for request in asked(judge)]


# --- lists ---------------------------------------------------------------------------------------


def test_answers_to_one_question_are_judged_in_lists_of_like_size(tmp_path: Path) -> None:
    folder, one = RunFolder(tmp_path), judge(list=3)
    run(bench_of([one], [*SEVEN, ALONE]), folder)
    assert sorted(map(len, lists_of(one))) == [1, 2, 2, 3]
    assert labels_of(folder) == {a.item_id: quality(a.text) for a in [*SEVEN, ALONE]}
    verdicts = list(folder.verdicts("m"))
    assert {v.shown[0].of for v in verdicts} == {1, 2, 3}
    assert sum((v.usage for v in verdicts), Usage()).calls == 4


@given(
    groups=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    most=st.integers(2, 8),
    seed=st.integers(0, 99),
)
def test_lists_hold_every_answer_once_and_nothing_of_another_question(groups, most, seed) -> None:
    answers = [
        Answer(f"{group}.{i}", "Rest, quality 3.", f"Question {group}?")
        for group, n in enumerate(groups)
        for i in range(n)
    ]
    bundles = RequestGroups(judge(list=most, seed=seed), indexed(answers))
    tasks = [bundles.task(row) for row in bundles.rows.tolist()]
    assert Counter(task.answer.item_id for task in tasks) == {a.item_id: 1 for a in answers}
    lists = list(dict.fromkeys(tuple(a.item_id for a in task.bundle) for task in tasks))
    assert sorted(i for ids in lists for i in ids) == sorted(a.item_id for a in answers)
    for group, n in enumerate(groups):
        sizes = [len(ids) for ids in lists if ids[0].startswith(f"{group}.")]
        assert len(sizes) == -(-n // most)
        assert max(sizes) - min(sizes) <= 1
    assert all(len({i.split(".")[0] for i in ids}) == 1 for ids in lists)


def test_the_seed_draws_the_lists_and_the_places() -> None:
    def places(seed: int) -> list[tuple[str, ...]]:
        bundles = RequestGroups(judge(list=4, seed=seed), indexed(SEVEN))
        return [tuple(a.item_id for a in bundles.task(row).bundle) for row in range(7)]

    assert places(1) == places(1)
    assert len({tuple(places(seed)) for seed in range(5)}) == 5


def test_a_run_that_ended_within_a_list_goes_on_with_the_rest_of_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    run(bench_of([judge(list=4)], SEVEN[:4]), folder)
    path = folder.verdict_path("m")
    first, second, *_ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:-20])
    again = judge(lambda r: reply(r, by_content(r)), list=4)
    run(bench_of([again], SEVEN[:4]), folder)
    (request,) = asked(again)
    assert len(shown(request)) == 4
    lines = list(folder.verdicts("m"))
    assert Counter(v.item_id for v in lines) == {a.item_id: 1 for a in SEVEN[:4]}
    assert labels_of(folder) == {a.item_id: quality(a.text) for a in SEVEN[:4]}
    assert sum((v.usage for v in lines[1:]), Usage()) == Usage(1, 101, 50)


def test_a_missing_score_is_asked_for_again_with_the_whole_list(tmp_path: Path) -> None:
    calls = Counter[str]()

    def script(request: Request) -> str:
        calls["all"] += 1
        scores = json.loads(by_content(request))
        if calls["all"] == 1:
            del scores["response_2"]
        return json.dumps(scores)

    folder, one = RunFolder(tmp_path), judge(script, list=4)
    run(bench_of([one], SEVEN[:4]), folder)
    assert len({*lists_of(one)}) == 1
    assert calls["all"] == 2
    assert Counter(v.status for v in folder.verdicts("m")) == {Status.OK: 4, Status.UNPARSED: 1}
    assert labels_of(folder) == {a.item_id: quality(a.text) for a in SEVEN[:4]}


def test_an_altered_answer_is_judged_in_its_parents_place(tmp_path: Path) -> None:
    altered = replace(SEVEN[0], item_id="a0~worse", text="Altered, quality 1.")
    lines = [{"item_id": "a0~worse", "parent_id": "a0"}]
    beside = Extension("stress", tuple(SEVEN[:3]), (altered,), lines)
    folder, one = RunFolder(tmp_path), judge(list=3)
    run(bench_of([one], [*SEVEN[:3], altered], extension=beside), folder)
    first, second = map(shown, asked(one))
    assert [altered.text if text == SEVEN[0].text else text for text in first] == second
    assert Counter(v.item_id for v in folder.verdicts("m")) == {
        "a0": 1, "a1": 1, "a2": 1, "a0~worse": 1,
    }  # fmt: skip
    places = {v.item_id: v.shown[0].place for v in folder.verdicts("m")}
    assert places["a0"] == places["a0~worse"]


def test_the_forecast_counts_calls_of_lists_and_orders(tmp_path: Path) -> None:
    folder, pairs = RunFolder(tmp_path), [pair("Rest.", "Honey.", f"p{i}") for i in range(5)]
    (lists,) = forecast(bench_of([judge(list=3)], SEVEN), folder)
    assert (lists.answers, lists.left, lists.calls) == (7, 7, 3)
    (both,) = forecast(bench_of([judge(rubric=PREFERENCE)], pairs, PREFERENCE), folder)
    assert (both.left, both.calls) == (5, 10)
    one = judge(rubric=PREFERENCE, orders="one")
    assert forecast(bench_of([one], pairs, PREFERENCE), folder)[0].calls == 5
    assert both.prompt_tokens == pytest.approx(2 * 5 * 300, rel=0.5)


# --- rubrics with metrics of several kinds of rows ------------------------------------------------

PAIRS = [pair("Honey, quality 5.", f"Bleach, quality {i}.", f"p{i}") for i in (1, 5)]
ROWS = [*SEVEN[:2], *PAIRS, *criteria(SEVEN[0], ["names rest", "names a dose"])]
LABELS = [
    HumanLabel(row.item_id, who, metric, label)
    for who in ("ann", "bob")
    for row, metric, label in [
        (SEVEN[0], "score", "1"), (SEVEN[1], "score", "2"), (SEVEN[0], "tone", "Kind"),
        (PAIRS[0], "better", "first"), (PAIRS[1], "better", "tie"),
        (ROWS[-1], "met", "met"), (ROWS[-2], "met", "not met"),
    ]
]  # fmt: skip


def of_each(request: Request) -> str:
    """A reply to any prompt that is right by content."""
    properties = list(request.schema["properties"])
    if properties[0].startswith("criterion"):
        return json.dumps(dict.fromkeys(properties, "met"))
    if properties[0] == "score":
        (text,) = shown(request, "answer")
        return json.dumps({"score": quality(text), "tone": "Kind"})
    return json.dumps({**json.loads(by_content(request)), "by_far": "much"})


def judges() -> list[LLMJudge]:
    found = []
    for name, prompt in (("single", "structured"), ("pairs", "compare"), ("items", "criteria")):
        one = judge(of_each, MIXED, prompt)
        found.append(one.asked_otherwise(name))
    return found


def test_every_judge_judges_the_rows_that_its_metrics_are_about(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    controls = control_judges(usual_controls(MIXED), MIXED, ROWS, LABELS)
    juries = (JuryConfig(name="jury", jury=("pairs", "longest-answer")),)
    run(bench_of(judges(), ROWS, MIXED, LABELS, controls=controls, juries=juries), folder)
    said = {
        n: {v.item_id: v.labels for v in folder.verdicts(n)} for n in folder.manifest()["judges"]
    }
    assert said["single"] == {
        "a0": {"score": "1", "tone": "Kind"}, "a1": {"score": "2", "tone": "Kind"},
    }  # fmt: skip
    assert said["pairs"] == {
        "p1": {"better": "first", "by_far": "much"}, "p5": {"better": "tie", "by_far": "much"},
    }  # fmt: skip
    assert said["items"] == {"a0#0": {"met": "met"}, "a0#1": {"met": "met"}}
    assert {i: labels.get("better") for i, labels in said["longest-answer"].items()} == {
        "a0": None, "a1": None, "a0#0": None, "a0#1": None, "p1": "second", "p5": "second",
    }  # fmt: skip
    assert said["constant-severe"]["p1"]["better"] == "tie"
    assert said["constant-fixed"]["p1"]["better"] == "first"
    assert said["jury"] == {"p1": {"by_far": "much"}, "p5": {"by_far": "much"}}
    abouts = {n: e["about"].get("metrics") for n, e in folder.manifest()["judges"].items()}
    assert abouts["pairs"] == ["better", "by_far"]
    assert abouts["items"] == ["met"]
    study = open_folder(folder)
    due = {
        (one.name, metric.id): int(study.asked(one, metric).sum())
        for one in study.judges
        for metric in MIXED.metrics
        if one.judges(metric)
    }
    assert due["pairs", "better"] == due["single", "score"] == due["items", "met"] == 2
    assert ("pairs", "score") not in due
    folder.write_manifest(folder.manifest(), "stopped")
    assert open_folder(RunFolder(tmp_path)).unfinished == (
        "This run is unfinished: the same command, given again, goes on with it.",
    )


def test_a_jury_of_pair_judges_votes_on_pairs_alone(tmp_path: Path) -> None:
    folder, (_, first, _) = RunFolder(tmp_path), judges()
    second = judge(lambda r: '{"better": "first", "by_far": "little"}', MIXED, "compare")
    juries = (JuryConfig(name="jury", jury=("pairs", "m")),)
    run(bench_of([first, second], ROWS, MIXED, juries=juries), folder)
    assert {v.item_id: dict(v.labels) for v in folder.verdicts("jury")} == {
        "p1": {"by_far": "much"}, "p5": {"better": "tie", "by_far": "much"},
    }  # fmt: skip
    about = folder.manifest()["judges"]["jury"]["about"]
    assert about["metrics"] == ["better", "by_far"]


class Anything:
    """A judge as a Python object: it labels whatever it is given."""

    name, signature = "own", "1"

    def describe(self) -> dict[str, str]:
        return {"judge": "own"}

    def judge(self, tasks) -> Iterator[Verdict]:
        for task in tasks:
            about = MIXED.of_kind(task.answer.kind)
            labels = {m.id: m.options[0] for m in about.metrics}
            yield Verdict(
                task.answer.item_id, task.answer.content_hash, "own", "1", Status.OK, labels
            )

    def close(self) -> None:
        pass


def test_a_judge_from_python_labels_each_kind_of_row(tmp_path: Path) -> None:
    (own,) = judges_from({"own": Anything()}, MIXED, ())
    folder = RunFolder(tmp_path)
    run(bench_of([], ROWS, MIXED, others=(own,)), folder)
    assert {v.item_id: set(v.labels) for v in folder.verdicts("own")}["p1"] == {"better", "by_far"}


def test_a_backend_from_python_needs_a_metric_of_answers() -> None:
    backend = judge()._backend
    told = "judges.own: is a backend, which judges answers, and the rubric has no metric of answers"
    with pytest.raises(SetupError, match=re.escape(told)):
        judges_from({"own": backend}, PREFERENCE, ())
    (own,) = judges_from({"own": backend}, MIXED, ())
    assert own.describe()["metrics"] == ["score", "tone"]


def test_variants_keep_to_the_rows_of_their_judge() -> None:
    _, pairs, _ = judges()
    turned = pairs.rubric.model_copy(update={"metrics": pairs.rubric.metrics[::-1]})
    variant = pairs.asked_otherwise("v", rubric=turned)
    assert [m.id for m in variant.rubric.metrics] == ["by_far", "better"]
    bundles = RequestGroups(variant, indexed(SEVEN[:1] + PAIRS), indexed(ROWS))
    assert [bundles.answers[row].item_id for row in bundles.rows.tolist()] == ["p1", "p5"]


# --- from files ----------------------------------------------------------------------------------

BENCH = """
name: side
rubric: rubric.json
data: [answers.csv, labels.csv]
pairs: {from: all, prefer: score}
judges:
  - {name: pairs, backend: BACKEND, prompt: compare-steps}
  - {name: lists, backend: BACKEND, prompt: compare, list: 4, seed: 3}
  - {name: single, backend: BACKEND}
  - {name: known, verdicts: known.csv}
"""


def written(folder: Path, backend: str, rubric: Rubric, texts: Sequence[str]) -> Path:
    """A benchmark whose people give every answer its quality."""
    rows = "".join(f"a{i},Cough?,s{i},{text}\n" for i, text in enumerate(texts))
    (folder / "answers.csv").write_text("item_id,question,system,text\n" + rows)
    lines = "".join(f"a{i},ann,{quality(text)}\n" for i, text in enumerate(texts))
    (folder / "labels.csv").write_text("item_id,annotator,score\n" + lines)
    votes = [
        " vs ".join(oriented(f"a{i}", f"a{j}")) + ",tie\n"
        for j in range(len(texts))
        for i in range(j)
    ]
    (folder / "known.csv").write_text("item_id,better\n" + "".join(votes))
    (folder / "rubric.json").write_text(rubric.model_dump_json())
    (folder / "bench.yaml").write_text(BENCH.replace("BACKEND", backend))
    return folder / "bench.yaml"


def test_a_benchmark_of_pairs_lists_and_single_answers_from_its_files(tmp_path: Path) -> None:
    def script(body: Body, count: int) -> Play:
        text = body["messages"][-1]["content"]
        found = re.findall(r"<(?:response|answer)-[0-9a-f]{8}>\n(.*?)\n</", text)
        keys = body["response_format"]["json_schema"]["schema"]["properties"]
        a = [quality(one) for one in found]
        best = "tie" if a[0] == a[-1] else "first" if a[0] > a[-1] else "second"
        values = {"better": best, "score": a[0], "rationale_1": "Good.", "rationale_2": "Bad."}
        values |= {f"response_{i}": label for i, label in enumerate(a, 1)}
        return said_by(json.dumps({key: values[key] for key in keys}))

    texts = [f"Answer {i} of quality {q}." for i, q in enumerate((5, 1, 3, 3))]
    with Loopback(script) as server:
        backend = f"'openai-compatible:x@{server.base_url}'"
        path = written(tmp_path, backend, MIXED.only(["better", "score"]), texts)
        folder, bench = RunFolder(tmp_path / "run"), load_bench(path)
        assert [w.kind for w in bench.warnings] == ["derived_preference"]
        assert {f.judge: f.calls for f in forecast(bench, folder)} == {
            "pairs": 12, "lists": 1, "single": 4,
        }  # fmt: skip
        run(bench, folder)
        assert len(server.bodies) == 17
    study = open_folder(folder)
    assert {v.item_id for v in folder.verdicts("known")} == {
        v.item_id for v in folder.verdicts("pairs")
    }
    asked_now = ("pairs", "lists", "single")
    for one in (found for found in study.judges if found.name in asked_now):
        (metric,) = filter(one.judges, study.rubric.metrics)
        due = study.asked(one, metric)
        assert due.sum() == (6 if one.name == "pairs" else 4)
        right = study.judged(one, metric)[due] == study.humans[metric.id].truth[due]
        assert right.all(), one.name
    verdict = next(iter(folder.verdicts("pairs")))
    assert verdict.rationale.startswith("Response 1: Good.\nResponse 2: Bad.\n\nWith the second")
    assert folder.manifest()["judges"]["lists"]["about"]["places"] == {"list": 4, "seed": 3}
    assert align_run(folder).study.judges


@pytest.mark.model
@pytest.mark.long
def test_a_real_model_compares_and_grades_side_by_side(tmp_path: Path, smollm2: Path) -> None:
    texts = [f"Honey soothes a cough: quality {q}." for q in (5, 1)]
    rubric = MIXED.only(["better", "score"])
    path = written(tmp_path, f"'llamacpp:{smollm2}'", rubric, texts)
    path.write_text(path.read_text().replace("compare-steps", "compare"))
    folder, bench = RunFolder(tmp_path / "run"), load_bench(path)
    try:
        run(bench, folder)
    finally:
        bench.close()
    (compared,), graded = folder.verdicts("pairs"), list(folder.verdicts("lists"))
    assert {v.status for v in (compared, *graded)} == {Status.OK}
    assert [s.place for s in compared.shown] == [0, 1]
    assert (len(graded), sum((v.usage for v in graded), Usage()).calls) == (2, 1)
