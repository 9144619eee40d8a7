from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.judges.config import JuryConfig
from judgebench.judges.recorded import Ballots, jury_about, jury_verdicts
from judgebench.records import Answer, Status, Verdict, content_hash
from judgebench.rubric import load_rubric

TONE = load_rubric("support-tone")  # ordinal with abstain, ordinal, nominal
SOLVES, POLITE, CHANNEL = TONE.metrics
ITEM = Answer("i", "text")
FULLY, PARTLY, NOT, ABSTAIN = SOLVES.options


def ballots(labels: Mapping[str, str], n: int = 1) -> Ballots:
    """The same labels, by metric, for each of n answers; -1 where a metric is not named."""
    return {m.id: np.full(n, m.index(labels[m.id]) if m.id in labels else -1) for m in TONE.metrics}


def decide(labels: list[str | None], metric=SOLVES, **settings) -> Verdict:
    names = tuple(f"m{n}" for n in range(len(labels)))
    config = JuryConfig(name="jury", jury=names, **settings)
    members = [ballots({} if label is None else {metric.id: label}) for label in labels]
    (verdict,) = jury_verdicts(config, TONE.only([metric.id]), [ITEM], members, "sig")
    return verdict


def chosen(labels: list[str | None], metric=SOLVES, **settings) -> str | None:
    return decide(labels, metric, **settings).labels.get(metric.id)


@pytest.mark.parametrize(
    ("labels", "rule", "ties", "expected"),
    [
        ([FULLY, FULLY, NOT], "majority", "upper", FULLY),
        ([FULLY, NOT], "majority", "upper", NOT),
        ([FULLY, NOT], "majority", "lower", FULLY),
        ([FULLY, NOT], "majority", "none", None),
        ([FULLY, PARTLY, NOT], "majority", "upper", NOT),
        ([FULLY, PARTLY, NOT], "majority", "lower", FULLY),
        ([FULLY, PARTLY, NOT], "majority", "none", None),
        ([FULLY, PARTLY, NOT], "median", "none", PARTLY),
        ([FULLY, FULLY, NOT, NOT], "median", "upper", NOT),
        ([FULLY, FULLY, NOT, NOT], "median", "lower", FULLY),  # never the mean between them
        ([FULLY, FULLY, NOT, NOT], "median", "none", None),
        ([FULLY, PARTLY, PARTLY, NOT], "median", "none", PARTLY),
        ([FULLY, FULLY, FULLY, NOT, NOT], "median", "upper", FULLY),
        ([FULLY, PARTLY], "median", "upper", PARTLY),
    ],
)
def test_majority_and_median_and_their_ties(labels, rule, ties, expected) -> None:
    verdict = decide(labels, rule=rule, ties=ties)
    assert verdict.labels.get(SOLVES.id) == expected
    assert verdict.status is (Status.OK if expected else Status.UNPARSED)
    assert verdict.reason == ("" if expected else "no member's label, or a tie, for solves_problem")


@pytest.mark.parametrize("ties", ["lower", "upper"])
def test_a_nominal_metric_is_settled_by_majority_under_median_too(ties) -> None:
    labels = ["Nowhere", "Shop", "Shop", "Phone"]
    assert chosen(labels, CHANNEL, rule="median", ties=ties) == "Shop"
    tied = {"lower": "Nowhere", "upper": "Shop"}[ties]
    assert chosen(["Nowhere", "Shop"], CHANNEL, rule="median", ties=ties) == tied


@pytest.mark.parametrize("rule", ["majority", "median"])
def test_a_tie_of_nominal_votes_is_no_label_unless_ties_are_stated(rule) -> None:
    verdict = decide(["Nowhere", "Shop"], CHANNEL, rule=rule)
    assert (verdict.status, verdict.labels) == (Status.UNPARSED, {})
    assert verdict.reason == "no member's label, or a tie, for channel"
    assert chosen(["Nowhere", "Shop"], CHANNEL, rule=rule, ties="upper") == "Shop"
    assert chosen([FULLY, NOT], rule=rule) == NOT  # ordinal: the more severe


@pytest.mark.parametrize("rule", ["majority", "median"])
def test_abstentions_and_missing_labels_do_not_vote(rule) -> None:
    assert chosen([ABSTAIN, ABSTAIN, FULLY], rule=rule) == FULLY
    assert chosen([None, None, FULLY], rule=rule) == FULLY
    assert chosen([ABSTAIN, None, NOT, NOT, FULLY], rule=rule) == NOT
    assert decide([ABSTAIN, None], rule=rule).status is Status.UNPARSED


def test_a_member_without_a_verdict_is_left_out_and_a_partly_read_one_votes() -> None:
    config = JuryConfig(name="jury", jury=("a", "b"))
    members = [ballots({POLITE.id: "Impolite"}), ballots({})]
    (verdict,) = jury_verdicts(config, TONE, [ITEM], members, "sig")
    assert verdict.labels == {POLITE.id: "Impolite"}
    assert verdict.status is Status.UNPARSED
    assert verdict.reason == "no member's label, or a tie, for solves_problem, channel"


def test_one_verdict_an_answer_in_their_order_signed_and_free() -> None:
    items = [Answer(f"i{n}", f"text {n}") for n in range(3)]
    config = JuryConfig(name="jury", jury=("a", "b"))
    found = list(jury_verdicts(config, TONE, items, [ballots({}, 3)] * 2, "sig"))
    assert [v.item_id for v in found] == ["i0", "i1", "i2"]
    assert [v.content_hash for v in found] == [a.content_hash for a in items]
    assert {(v.judge, v.signature, v.usage.calls, v.cost) for v in found} == {
        ("jury", "sig", 0, None)
    }


votes = st.lists(st.sampled_from([*SOLVES.options, None]), min_size=2, max_size=9)
rules = {
    "rule": st.sampled_from(["majority", "median"]),
    "ties": st.sampled_from(["lower", "upper", "none"]),
}


@settings(deadline=None)
@given(labels=votes, data=st.data(), **rules)
def test_the_order_of_the_members_is_no_matter(labels, data, rule, ties) -> None:
    turned = data.draw(st.permutations(labels))
    assert chosen(labels, rule=rule, ties=ties) == chosen(turned, rule=rule, ties=ties)


@settings(deadline=None)
@given(labels=votes, **rules)
def test_a_jury_gives_a_label_that_one_of_its_members_gave(labels, rule, ties) -> None:
    given_labels = [x for x in labels if x not in (None, ABSTAIN)]
    found = chosen(labels, rule=rule, ties=ties)
    assert found in given_labels or (found is None and (ties == "none" or not given_labels))
    if rule == "majority" and found is not None:
        assert Counter(given_labels)[found] == max(Counter(given_labels).values())


@settings(deadline=None)
@given(labels=votes, worse=st.integers(0, 8))
def test_a_more_severe_vote_never_makes_the_median_less_severe(labels, worse) -> None:
    worse %= len(labels)
    if labels[worse] in (FULLY, PARTLY):
        before = chosen(labels, rule="median")
        labels[worse] = NOT
        assert SOLVES.index(chosen(labels, rule="median")) >= SOLVES.index(before)


def test_what_a_jury_depends_on() -> None:
    config = JuryConfig(name="jury", jury=("a", "b"))
    plain = jury_about(config, TONE, {"a": "s1", "b": "s2"})
    others = [
        jury_about(config, TONE, {"a": "s1", "b": "s3"}),
        jury_about(config, TONE.only(["channel"]), {"a": "s1", "b": "s2"}),
        jury_about(config.model_copy(update={"rule": "median"}), TONE, {"a": "s1", "b": "s2"}),
        jury_about(config.model_copy(update={"ties": "lower"}), TONE, {"a": "s1", "b": "s2"}),
    ]
    assert len({content_hash(about) for about in [plain, *others]}) == 5
    assert content_hash(jury_about(config, TONE, {"b": "s2", "a": "s1"})) == content_hash(plain)
