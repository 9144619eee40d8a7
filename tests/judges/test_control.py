import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.judges.control import ABOUT, CONTROLS, UNTAUGHT, Control, ControlJudge, Fit
from judgebench.records import Answer, HumanLabel, Status, Verdict
from judgebench.rubric import Rubric, load_rubric

TONE = load_rubric("support-tone")  # two ordinal metrics, one of them with abstain; one nominal
SOLVES, POLITE, CHANNEL = TONE.metrics


def answers(n: int = 40, per_group: int = 2) -> list[Answer]:
    return [
        Answer(f"i{i}", "word " * ((i * 7) % 31), question=f"q{i // per_group}") for i in range(n)
    ]


def labels(items: list[Answer], rubric: Rubric = TONE) -> list[HumanLabel]:
    found = []
    for i, item in enumerate(items):
        for m in rubric.metrics:
            for annotator, step in (("ann", 3), ("bob", 5)):
                text = m.label_texts[(i * i + i // step) % len(m.labels)]
                found.append(HumanLabel(item.item_id, annotator, m.id, text))
    return found


def halves(items: Iterable[Answer], seed: int) -> dict[str, int]:
    """What `Fit.half` is to hold for each group, by the plainest means."""
    groups = {a.group: hashlib.sha256(f"{seed}\0half\0{a.group}".encode()).digest() for a in items}
    return {group: i % 2 for i, group in enumerate(sorted(groups, key=groups.__getitem__))}


def judge(control, items, human, seed: int = 0, rubric: Rubric = TONE) -> dict[str, Verdict]:
    return {v.item_id: v for v in ControlJudge(control, Fit(rubric, items, human, seed)).verdicts()}


def labels_of(verdicts: dict[str, Verdict], item_ids) -> list:
    return [dict(verdicts[i].labels) for i in item_ids]


# --- what every control keeps --------------------------------------------------------------------


@pytest.mark.parametrize("control", CONTROLS)
def test_every_answer_gets_a_label_for_every_metric(control) -> None:
    items = answers()
    found = judge(control, items, labels(items))
    assert list(found) == [a.item_id for a in items]
    for item in items:
        verdict = found[item.item_id]
        assert verdict.status is Status.OK
        assert (verdict.judge, verdict.content_hash) == (control, item.content_hash)
        assert verdict.usage.calls == 0
        assert all(verdict.labels[m.id] in m.label_texts for m in TONE.metrics)


def test_every_control_is_described() -> None:
    assert set(ABOUT) == set(get_args(Control)) == {*CONTROLS, *UNTAUGHT, "constant-severe"}


LEARNT = ("prior", "longest-answer")
BLIND = [control for control in CONTROLS if control != "constant-majority"]
half_labels = st.lists(st.integers(0, 2), min_size=40, max_size=40)


@settings(max_examples=40, deadline=None)
@given(control=st.sampled_from(BLIND), new=half_labels, seed=st.integers(0, 5))
def test_no_control_sees_the_labels_that_it_is_scored_on(control, new, seed) -> None:
    """Whatever the humans of one half say, the verdicts on that half stay the same."""
    items = answers()
    human = labels(items)
    half = halves(items, seed)
    before = judge(control, items, human, seed)
    for side in (0, 1):
        own = {a.item_id for a in items if half[a.group] == side}
        changed = [
            HumanLabel(h.item_id, h.annotator, h.metric, metric.label_texts[n % len(metric.labels)])
            if h.item_id in own
            else h
            for n, h in zip(new * 6, human, strict=True)
            for metric in TONE.metrics
            if metric.id == h.metric
        ]
        after = judge(control, items, changed, seed)
        assert labels_of(after, own) == labels_of(before, own)
        none = [h for h in human if h.item_id not in own]
        assert labels_of(judge(control, items, none, seed), own) == labels_of(before, own)


def test_the_labels_of_the_other_half_do_matter() -> None:
    items = answers()
    half = halves(items, 0)
    severe = [
        HumanLabel(a.item_id, "ann", m.id, m.label_texts[-1 if half[a.group] == 0 else 0])
        for a in items
        for m in TONE.metrics
    ]
    for control in LEARNT:
        found = judge(control, items, severe)
        for item in items:
            expected = {
                m.id: m.label_texts[-1 if half[item.group] == 1 else 0] for m in TONE.metrics
            }
            assert found[item.item_id].labels == expected


@settings(deadline=None)
@given(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=30), st.integers())
def test_halves_keep_groups_whole_and_differ_by_one_at_most(groups: list[str], seed: int) -> None:
    items = [Answer(f"i{n}", "x", group=g) for n, g in enumerate(groups)]
    fit, turned = Fit(TONE, items, [], seed), Fit(TONE, items[::-1], [], seed)
    half = dict(zip(groups, fit.half.tolist(), strict=True))
    counts = Counter(half.values())
    assert 0 <= counts[0] - counts[1] <= 1
    assert half == dict(zip(groups[::-1], turned.half.tolist(), strict=True)) == halves(items, seed)


@pytest.mark.parametrize("control", CONTROLS)
def test_the_same_seed_gives_the_same_verdicts_in_any_order(control) -> None:
    items = answers()
    human = labels(items)
    first = judge(control, items, human)
    turned = ControlJudge(control, Fit(TONE, items[::-1], human[::-1]))
    assert {v.item_id: v for v in turned.verdicts()} == first


@pytest.mark.parametrize("control", CONTROLS)
def test_the_signature_tells_of_all_that_verdicts_depend_on(control) -> None:
    items = answers()
    human = labels(items)
    plain, same = (ControlJudge(control, Fit(TONE, items, human, 0)) for _ in range(2))
    changed = [
        Fit(TONE, items, human, 1),
        Fit(TONE, items, human[3:], 0),
        Fit(TONE, [*items[1:], Answer("i0", "changed")], human, 0),
        Fit(TONE.only(["politeness"]), items, human, 0),
    ]
    others = [ControlJudge(control, fit) for fit in changed]
    assert plain.signature == same.signature
    assert len({j.signature for j in [plain, *others]}) == 5
    assert plain.describe()["control"] == control


# --- each control --------------------------------------------------------------------------------


def one_metric(counts: dict[str, int], n: int = 400) -> tuple[list[Answer], list[HumanLabel]]:
    """Answers of equally many groups, whose labels on `solves_problem` are in these shares."""
    texts = [text for text, count in counts.items() for _ in range(count)]
    items = [Answer(f"i{i}", "w" * ((i * 13) % 101), question=f"q{i}") for i in range(n)]
    human = [HumanLabel(a.item_id, "ann", SOLVES.id, texts[i % len(texts)])
             for i, a in enumerate(items)]  # fmt: skip
    return items, human


def shares(control, counts: dict[str, int], seed: int = 0) -> dict[str, float]:
    items, human = one_metric(counts)
    rubric = TONE.only([SOLVES.id])
    found = judge(control, items, human, seed, rubric)
    labels = Counter(v.labels[SOLVES.id] for v in found.values())
    return {text: labels[text] / len(items) for text in SOLVES.label_texts}


COUNTS = {"Fully": 7, "Partly": 2, "Not at all": 1}


def test_constant_majority_takes_the_most_common_and_of_tied_ones_the_least_severe() -> None:
    assert shares("constant-majority", COUNTS)["Fully"] == 1
    assert shares("constant-majority", {"Fully": 1, "Not at all": 5})["Not at all"] == 1
    items = [Answer("a", "x", group="a"), Answer("b", "y", group="b")]
    tied = [HumanLabel(i, p, SOLVES.id, t) for i in "ab"
            for p, t in (("p", "Not at all"), ("q", "Partly"))]  # fmt: skip
    found = judge("constant-majority", items, tied, rubric=TONE.only([SOLVES.id]))
    assert {v.labels[SOLVES.id] for v in found.values()} == {"Partly"}


def test_constant_majority_is_one_label_also_where_halves_differ() -> None:
    """Learnt on the other half of the questions, it would be wrong on nearly every answer here."""
    items, half = answers(200, 1), halves(answers(200, 1), 0)
    texts = [SOLVES.label_texts[half[item.group]] for item in items]
    human = [
        HumanLabel(item.item_id, "ann", SOLVES.id, text)
        for item, text in zip(items[1:], texts[1:], strict=True)
    ]
    found = judge("constant-majority", items, human, rubric=TONE.only([SOLVES.id]))
    (label,) = {verdict.labels[SOLVES.id] for verdict in found.values()}
    assert label == Counter(h.label for h in human).most_common(1)[0][0]


def test_constant_fixed_is_the_least_severe_label_and_needs_no_human() -> None:
    found = judge("constant-fixed", answers(), [])
    first = {m.id: m.label_texts[0] for m in TONE.metrics}
    assert all(v.labels == first and v.status is Status.OK for v in found.values())


def test_random_is_even_and_needs_no_human() -> None:
    found = shares("random", COUNTS)
    assert all(abs(share - 1 / 3) < 0.08 for share in found.values())
    assert shares("random", {"Fully": 1}) == found
    assert shares("random", COUNTS, seed=1) != found


@pytest.mark.parametrize(("control", "within"), [("prior", 0.06), ("longest-answer", 0.04)])
def test_what_learns_gives_labels_in_the_shares_of_people(control, within: float) -> None:
    estimate = shares(control, COUNTS)
    for text, count in COUNTS.items():
        assert estimate[text] == pytest.approx(count / 10, abs=within)
    assert shares(control, {"Fully": 1, "Not at all": 1})["Partly"] == 0


def test_the_longer_an_answer_the_less_severe_its_label() -> None:
    items, human = one_metric(COUNTS)
    rubric = TONE.only([SOLVES.id])
    found = judge("longest-answer", items, human, rubric=rubric)
    half = halves(items, 0)
    for side in (0, 1):
        longest_first = sorted(
            (a for a in items if half[a.group] == side), key=lambda a: (-len(a.text), a.item_id)
        )
        severities = [SOLVES.index(found[a.item_id].labels[SOLVES.id]) for a in longest_first]
        assert severities == sorted(severities)
        assert set(severities) == {0, 1, 2}


def test_longest_answer_on_a_nominal_metric_gives_long_ones_the_most_common_label() -> None:
    items = answers(60, per_group=1)
    human = [HumanLabel(a.item_id, "ann", CHANNEL.id, "Website" if i % 4 else "Phone")
             for i, a in enumerate(items)]  # fmt: skip
    found = judge("longest-answer", items, human, rubric=TONE.only([CHANNEL.id]))
    by_length = sorted(items, key=lambda a: len(a.text))
    assert found[by_length[-1].item_id].labels[CHANNEL.id] == "Website"
    assert found[by_length[0].item_id].labels[CHANNEL.id] == "Phone"


# --- where humans said nothing -------------------------------------------------------------------


@pytest.mark.parametrize("control", LEARNT)
def test_without_labels_in_the_other_half_a_verdict_is_skipped_and_says_why(control) -> None:
    items = answers()
    half = halves(items, 0)
    human = [
        h for h in labels(items)
        if h.metric != POLITE.id or half[f"q{int(h.item_id[1:]) // 2}"] == 1
    ]  # fmt: skip
    found = judge(control, items, human)
    for item in items:
        verdict = found[item.item_id]
        if half[item.group] == 1:  # the other half, 0, has no label on politeness
            assert verdict.status is Status.SKIPPED
            assert verdict.reason == "no human label in the other half for politeness"
            assert set(verdict.labels) == {SOLVES.id, CHANNEL.id}
        else:
            assert verdict.status is Status.OK


def test_blank_cells_abstentions_and_labels_of_other_items_do_not_count() -> None:
    items = answers()
    human = [HumanLabel(a.item_id, "ann", SOLVES.id, "Partly") for a in items]
    more = [
        label
        for a in items
        for label in (
            HumanLabel(a.item_id, "bob", SOLVES.id, None),
            HumanLabel(a.item_id, "cy", SOLVES.id, "Cannot tell"),
            HumanLabel(f"not-{a.item_id}", "dan", SOLVES.id, "Fully"),
            HumanLabel(a.item_id, "eve", "no_metric", "Fully"),
        )
    ]
    rubric = TONE.only([SOLVES.id])
    for control in ("constant-majority", "prior", "longest-answer"):
        found = judge(control, items, human + more, rubric=rubric)
        assert {v.labels[SOLVES.id] for v in found.values()} == {"Partly"}


@pytest.mark.parametrize("control", CONTROLS)
def test_one_group_alone_has_no_other_half(control) -> None:
    items = [Answer(f"i{n}", "x" * n, group="g") for n in range(4)]
    found = judge(control, items, labels(items))
    fitted = control in LEARNT
    assert {v.status for v in found.values()} == {Status.SKIPPED if fitted else Status.OK}
