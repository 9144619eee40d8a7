"""Verdicts that stay in their files say the same as verdicts in memory."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from align_case import ABSTAIN, answers, metric
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.errors import SetupError
from judgebench.records import Answer, Status, Usage, Verdict, add_known
from judgebench.runs.verdict_log import FiledVerdicts, verdict_line
from judgebench.studies.answers import indexed
from judgebench.studies.verdicts import coded, replaced, status_counts

ITEMS = answers(5)
METRICS = (metric(), metric("nominal", "xyz", id="tone"))
OTHER_HASH = "0" * 16

weights = st.sampled_from([0.0, 0.125, 0.25, 0.5, 1.0, -0.5, float("nan"), float("inf")])
weighed = st.fixed_dictionaries(
    {"a": weights, "b": weights, "c": weights}, optional={ABSTAIN: weights}
)
lines = st.builds(
    Verdict,
    item_id=st.sampled_from([*(a.item_id for a in ITEMS), "elsewhere"]),
    content_hash=st.just(OTHER_HASH) | st.just(""),  # "" stands for the right one
    judge=st.just("m"),
    signature=st.sampled_from(["s", "s", "old"]),
    status=st.sampled_from(Status),
    labels=st.fixed_dictionaries(
        {}, optional={"harm": st.sampled_from("abc?"), "tone": st.sampled_from("xyz?")}
    ),
    probabilities=st.none() | st.fixed_dictionaries({}, optional={"harm": weighed}),
    raw=st.text(),
    usage=st.builds(Usage, st.integers(0, 3), st.none() | st.integers(0, 9)),
    cost=st.none() | st.just(0.25),
)


def write(path: Path, verdicts: Sequence[Verdict]) -> Path:
    path.write_bytes(b"".join(map(verdict_line, verdicts)))
    return path


def filed(path: Path, answers: Sequence[Answer] = ITEMS) -> FiledVerdicts:
    return FiledVerdicts(path, "s", indexed(answers), METRICS)


def of(item: int, **more) -> Verdict:
    answer = ITEMS[item]
    given = {"labels": {"harm": "a"}, "status": Status.OK, "signature": "s", **more}
    return Verdict(answer.item_id, answer.content_hash, "m", **given)


def right_hash(verdict: Verdict) -> Verdict:
    hashes = {a.item_id: a.content_hash for a in ITEMS}
    wanted = verdict.content_hash or hashes.get(verdict.item_id, OTHER_HASH)
    return Verdict(**{**{f: getattr(verdict, f) for f in Verdict.__slots__},
                      "content_hash": wanted})  # fmt: skip


@settings(deadline=None)
@given(st.lists(lines, max_size=30))
def test_the_last_line_of_an_answer_as_it_stands_is_its_verdict(written) -> None:
    hashes = {a.item_id: a.content_hash for a in ITEMS}
    written = [right_hash(v) for v in written]
    signed = [v for v in written if v.signature == "s"]
    latest = {v.item_id: v for v in signed if hashes.get(v.item_id) == v.content_hash}
    usage, cost = Usage(), None
    for verdict in signed:
        usage, cost = usage + verdict.usage, add_known(cost, verdict.cost)
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "v.jsonl", written)
        found = filed(path)
        assert repr(dict(found)) == repr({i: latest[i] for i in found})  # NaN is unlike itself
        assert len(found) == len(latest)
        assert (found.usage, found.cost) == (usage, cost)
        assert (
            status_counts(found)
            == status_counts(latest)
            == Counter(v.status for v in latest.values())
        )
        for order in (ITEMS, ITEMS[::-1], ITEMS[1:3], [*ITEMS, *answers(7)[5:]]):
            some = indexed(order)
            part = filed(path, some)
            assert repr(dict(part)) == repr({i: latest[i] for i in some.item_ids() if i in latest})
            assert status_counts(part) == Counter(v.status for v in part.values())
            for one in METRICS:
                expected = coded(latest, some, [one]).label_indices(one, some).tolist()
                weights = coded(latest, some, [one]).label_probabilities(one, some)
                for verdicts in (found, part):
                    assert (
                        coded(verdicts, some, [one]).label_indices(one, some).tolist() == expected
                    )
                    read = coded(verdicts, some, [one]).label_probabilities(one, some)
                    np.testing.assert_array_equal(read, weights)


def test_only_what_is_there_is_in_it(tmp_path: Path) -> None:
    found = filed(write(tmp_path / "v.jsonl", [of(1)]))
    assert "i1" in found
    assert "i0" in filed(write(tmp_path / "first.jsonl", [of(0)]))
    for missing in ("i0", "elsewhere", 3):
        assert missing not in found
        with pytest.raises(KeyError):
            found[missing]


def test_an_unknown_label_is_told_where_it_counts_and_only_there(tmp_path: Path) -> None:
    wrong, good = of(0, labels={"harm": "worse"}), of(0, labels={"harm": "c"})
    mended = filed(write(tmp_path / "mended.jsonl", [wrong, good]))
    assert mended.label_indices(METRICS[0], indexed(ITEMS)).tolist() == [2, -1, -1, -1, -1]
    broken = filed(write(tmp_path / "broken.jsonl", [good, wrong]))
    with pytest.raises(SetupError, match="is not a label of harm; found worse"):
        broken.label_indices(METRICS[0], indexed(ITEMS))


def test_several_labels_of_a_line_are_a_set(tmp_path: Path) -> None:
    one = metric("nominal", "xyz", id="tone", several=True)
    said = ["z | x", "y", "?", None]
    given = [of(i, labels={"tone": x} if x else {}) for i, x in enumerate(said)]
    path = write(tmp_path / "v.jsonl", given)
    found = FiledVerdicts(path, "s", indexed(ITEMS), (one,))
    assert found.label_sets(one, indexed(ITEMS)).tolist() == [5, 2, -1, -1, -1]
    assert coded(dict(found), indexed(ITEMS[::-1]), [one]).label_sets(
        one, indexed(ITEMS[::-1])
    ).tolist() == [-1, -1, -1, 2, 5]
    assert found.label_indices(one, indexed(ITEMS)).tolist() == [2, 1, -1, -1, -1]


@pytest.mark.parametrize("labels", [["a"], "a", {"harm": ["a"]}, {"harm": {}}])
def test_labels_of_another_shape_are_damage(tmp_path: Path, labels) -> None:
    path = write(tmp_path / "v.jsonl", [of(0), of(1, labels=labels)])
    with pytest.raises(SetupError, match="is no verdict") as caught:
        filed(path)
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == (str(path), 2)


def test_the_file_may_grow_and_a_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path / "v.jsonl", [of(0), of(1)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    found = filed(path)
    path.write_bytes(whole + whole)
    assert dict(found) == {"i0": of(0)}


def says(probabilities: object, item: int = 0) -> Verdict:
    return of(item, probabilities=probabilities)


def test_probabilities_stand_in_the_rubrics_order_and_add_up_to_one(tmp_path: Path) -> None:
    given = [
        {"c": 0.125, "b": 0.25, "a": 0.5, ABSTAIN: 0.125},  # shares of what is no abstention
        {"a": 0.25, "b": 0.125, "c": 0.125, ABSTAIN: 0.5},  # to abstain is the likeliest
        {"a": 0.5, "b": 0.5, ABSTAIN: 0.0},  # no number for c
        {"a": 0.0, "b": 0.0, "c": 0.0, ABSTAIN: 0.0},
    ]
    said = [says({"harm": p}, i) for i, p in enumerate(given)]
    expected = [[4 / 7, 2 / 7, 1 / 7], *[[np.nan] * 3] * 4]
    for verdicts in (filed(write(tmp_path / "v.jsonl", said)), {v.item_id: v for v in said}):
        found = coded(verdicts, indexed(ITEMS), METRICS).label_probabilities(
            METRICS[0], indexed(ITEMS)
        )
        np.testing.assert_allclose(found, expected)
        assert np.isnan(
            coded(verdicts, indexed(ITEMS), METRICS).label_probabilities(METRICS[1], indexed(ITEMS))
        ).all()


def test_probabilities_where_several_labels_give_no_grade(tmp_path: Path) -> None:
    two = METRICS[0].model_copy(update={"abstain": (ABSTAIN, "n/a")})
    given = [
        {"a": 0.3, "b": 0.1, "c": 0.0, ABSTAIN: 0.3, "n/a": 0.3},  # no option is likelier than a
        {"a": 0.3, "b": 0.1, "c": 0.0, ABSTAIN: 0.2, "n/a": 0.4},
        {"a": 0.5, "b": 0.5, "c": 0.0, ABSTAIN: 0.0},  # no number for n/a
    ]
    said = [says({"harm": p}, i) for i, p in enumerate(given)]
    said.append(of(3, labels={"harm": "n/a"}))
    path = write(tmp_path / "v.jsonl", said)
    read = FiledVerdicts(path, "s", indexed(ITEMS), [two, METRICS[1]])
    for verdicts in (read, {v.item_id: v for v in said}):
        found = coded(verdicts, indexed(ITEMS), [two]).label_probabilities(two, indexed(ITEMS))
        np.testing.assert_allclose(found, [[0.75, 0.25, 0], *[[np.nan] * 3] * 4])
        assert coded(verdicts, indexed(ITEMS), [two]).label_indices(two, indexed(ITEMS))[3] == -1


def test_a_later_verdict_without_probabilities_takes_the_earlier_ones_away(tmp_path: Path) -> None:
    weights = {"harm": {"a": 1.0, "b": 0.0, "c": 0.0, ABSTAIN: 0.0}}
    found = filed(write(tmp_path / "v.jsonl", [says(weights), says(weights, 1), says(None)]))
    there = ~np.isnan(found.label_probabilities(METRICS[0], indexed(ITEMS)))
    assert there.all(axis=1).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize(
    "probabilities",
    [
        ["a"],
        "a",
        {"harm": ["a"]},
        {"harm": "a"},
        {"harm": dict.fromkeys("abc?", "x")},
    ],
)
def test_probabilities_of_another_shape_are_damage(tmp_path: Path, probabilities) -> None:
    path = write(tmp_path / "v.jsonl", [of(0), says(probabilities, 1)])
    with pytest.raises(SetupError, match="or probabilities") as caught:
        filed(path)
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == (str(path), 2)


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ({"a": 9}, ""),
        ({"a + b": 5}, "came from 2 models (a 5, b 5): "),
        ({"a, engine 1": 4, "a, engine 2": 3}, "the engine of its model changed during the run "
         "(a, engine 1 4, a, engine 2 3)."),
        ({"a, engine 1": 4, "b, engine 1": 3}, "came from 2 models (a, engine 1 4, b, engine 1 3)"),
        ({x: 9 - n for n, x in enumerate("abcd")}, "came from 4 models (a 9, b 8, c 7, d 6): "),
        ({x: 9 - n for n, x in enumerate("abcde")}, "came from 5 models (a 9, b 8, c 7, d 6, …)"),
    ],
)  # fmt: skip
def test_a_model_or_an_engine_that_changed_is_named(models: dict[str, int], said: str) -> None:
    found = replaced("m", models)
    assert said in found
    assert bool(found) == bool(said)
