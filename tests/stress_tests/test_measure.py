"""Altered answers and verdicts in, a whole result out."""

import pytest
from align_case import answers, metric, rubric
from hypothesis import given, settings
from hypothesis import strategies as st
from stress_case import Attack, detection, grouped, invariance, is_sane, said, stressed, variant

from judgebench.stress_tests.analysis import MOST_MISSES, measure
from judgebench.stress_tests.result import EVERY, StressRun
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, study_of

C = {"harm": "c"}


def test_an_altered_answer_that_failed_a_check_is_never_counted() -> None:
    failed = {"differs": "nothing was changed"}
    found = stressed(
        {"m": "aa"}, Attack("false", {"m": "aa"}, C, failed=failed),
        Attack("fine", {"m": "cc"}, C), Attack("same", {"m": "cc"}, failed=failed),
    )  # fmt: skip
    assert {d.recipe for d in grouped(found, "violations")} == {EVERY, "fine"}
    assert detection(found).detected.n == 2
    assert (grouped(found, "invariance"), found.misses) == ([], ())


def test_a_violation_may_be_the_parent_of_a_probe() -> None:
    sound = answers(2)
    violations = Attack("false", {"m": "cb"}, C).items(sound)
    shown = [v.answer for v in violations]
    probes = Attack("tone", {"m": "bb"}).items(shown)
    verdicts = (
        said("m", "aa", sound)
        | said("m", "cb", shown)
        | said("m", "bb", [p.answer for p in probes])
    )
    judge = JudgeVerdicts("m", "judge", "s", verdicts)
    study = study_of(rubric(), sound, [], TruthConfig())
    found = measure(study, StressRun([*violations, *probes], [judge]))
    assert invariance(found, probe="tone").shift.value == -1 / 2
    assert detection(found).detected.value == 1 / 2


def test_a_judge_is_measured_as_if_it_were_alone() -> None:
    def attacks(*judges: str):
        rows = {"m": ("cabc", "aaab", "ab.a"), "k": ("....", "cccc", "abc.")}
        return [
            Attack(name, {j: rows[j][i] for j in judges}, worsen, demand)
            for i, (name, worsen, demand) in enumerate(
                [("false", C, {}), ("same", {}, {}), ("obey", {}, {"harm": "a"})]
            )
        ]

    alone = stressed({"m": "aabb"}, *attacks("m"), variants=[variant("m", "abbb")])
    among = stressed(
        {"m": "aabb", "k": "cccc"}, *attacks("m", "k"), variants=[variant("m", "abbb")]
    )
    own = [row for row in among.rows if row.judge == "m"]
    assert own == [row for row in alone.rows if row.judge == "m"]


def test_the_level_is_the_callers() -> None:
    attack = Attack("false", {"m": "cacbcaccacbc"}, C)
    half, usual = (
        detection(stressed({"m": "aaabaacaaaba"}, attack, level=level)) for level in (0.5, 0.95)
    )
    assert half.advantage.low > usual.advantage.low  # type: ignore[operator]
    assert half.detected.low > usual.detected.low  # type: ignore[operator]
    assert half.detected.level == half.told_apart.level == half.false_alarms.level == 0.5


cases = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.text("abc.? ", min_size=n, max_size=n), min_size=8, max_size=8)
)


@settings(max_examples=40, deadline=None)
@given(cases, st.sampled_from(["ordinal", "nominal"]), st.booleans())
def test_nothing_is_ever_nan_and_what_is_undefined_says_why(rows, kind, labelled) -> None:
    second = {"harm": rows[0], "tone": rows[1].replace(" ", ".")}
    altered = [{"harm": row, "tone": rows[7].replace(" ", ".")} for row in rows[2:6]]
    found = stressed(
        {"m": second},
        Attack("false", {"m": altered[0]}, C),
        Attack("same", {"m": altered[1]}),
        Attack("obey", {"m": altered[2]}, demand={"harm": "a", "tone": "c"}),
        variants=[variant("m", altered[3]), variant("m", altered[0], "per-metric")],
        metrics=(metric(), metric(kind, id="tone", title="Tone")),
        humans={"harm": {"ann": rows[6].replace(" ", ".")}} if labelled else None,
    )
    assert is_sane(found)
    estimates = [
        row.estimate
        for row in found.rows
        if row.analysis not in ("recipe", "misses")
        and row.statistic not in ("asked", "p", "p_holm")
    ]
    assert len(estimates) > 20
    for estimate in estimates:
        assert estimate.value is not None or estimate.reason
        assert estimate.low is not None or estimate.reason


def test_violations_that_most_judges_missed_come_first() -> None:
    attack = Attack("false", {"m": "cbba", "k": "c.ca", "fixed": "aaaa"}, C)
    found = stressed(dict.fromkeys("mk", "aaaa") | {"fixed": "aaaa"}, attack, controls=["fixed"])
    assert [(x.item.item_id, x.missed_by) for x in found.misses] == [
        ("false-3", ("m", "k")), ("false-1", ("m",)), ("false-2", ("m",)),
    ]  # fmt: skip
    assert found.n_misses == 3
    both = found.misses[0]
    assert {j: v.labels["harm"] for j, v in both.verdicts.items()} == {"m": "a", "k": "a"}
    assert {j: v.item_id for j, v in both.of_parent.items()} == {"m": "i3", "k": "i3"}


def test_any_demanded_metric_can_be_missed() -> None:
    metrics = (metric(), metric(id="tone", title="Tone"))
    rows = {"harm": "cc", "tone": "ba"}
    attack = Attack("false", {"m": rows}, {"harm": "b", "tone": "b"})
    found = stressed({"m": {"harm": "aa", "tone": "aa"}}, attack, metrics=metrics)
    assert [x.item.item_id for x in found.misses] == ["false-1"]


def test_a_missing_label_and_a_probe_are_no_miss() -> None:
    found = stressed({"m": "aaa"}, Attack("false", {"m": ".? "}, C), Attack("same", {"m": "aaa"}))
    assert (found.misses, found.n_misses) == ((), 0)


def test_a_long_list_is_cut() -> None:
    n = MOST_MISSES + 1
    found = stressed({"m": "a" * n}, Attack("false", {"m": "a" * n}, C))
    assert (len(found.misses), found.n_misses) == (MOST_MISSES, n)


def test_no_violation_is_told() -> None:
    found = stressed({"m": "a"}, Attack("same", {"m": "a"}))
    assert found.notes == ("There is no violation at all: whether a judge detects one was not "
                           "tested.",)  # fmt: skip


def test_a_good_judge_needs_no_note() -> None:
    attack = Attack("false", {"m": "cccccc", "random": "acbcab"}, C)
    parents = {"m": "aaaaaa", "random": "abcabc"}
    assert stressed(parents, attack, controls=["random"]).notes == ()


def test_a_low_rate_deceives_nobody() -> None:
    assert stressed({"m": "aaaac"}, Attack("false", {"m": "caaaa"}, C)).notes == ()


@pytest.mark.parametrize(
    ("judge", "told"), [("ccca", False), ("caaa", True), ("aaaa", True), ("....", False)]
)
def test_a_judge_that_a_control_matches_is_named(judge: str, told: bool) -> None:
    attack = Attack("false", {"m": judge, "random": "acaa"}, C)
    found = stressed({"m": "aaaa", "random": "aaaa"}, attack, controls=["random"])
    note = "m tells no more violations from their parents than a baseline on Harm."
    assert (note in found.notes) == told
    assert not any(n.startswith("random") for n in found.notes)
