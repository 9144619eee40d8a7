"""The rule file: the shipped one, one's own, and what is wrong with it, all at once."""

from pathlib import Path

import pytest
from align_case import metric, rubric

from judgebench.decisions.rule import DecisionRule, load_rule, rule_for
from judgebench.decisions.sentences import rule_sentences
from judgebench.errors import SetupError


def test_the_shipped_file_says_what_the_code_takes_without_one() -> None:
    assert load_rule() == DecisionRule()


def test_ones_own_file_needs_to_hold_only_what_differs(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text("replace: {humans: {margin: 0.02}}\n")
    rule = load_rule(tmp_path / "ours.yaml")
    assert rule.replace.humans.margin == 0.02
    assert rule.replace.failures == DecisionRule().replace.failures


def test_severe_means_the_last_label_unless_the_rule_says_otherwise() -> None:
    assert DecisionRule().severe_index(metric()) == 2
    assert DecisionRule(severe_from={"harm": "b"}).severe_index(metric()) == 1
    assert DecisionRule().severe_index(metric("nominal")) is None


def test_severe_from_must_fit_the_rubric() -> None:
    rule = DecisionRule(severe_from={"harm": "z", "none": "a"})
    with pytest.raises(SetupError) as caught:
        rule.check(rubric(), "ours.yaml")
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["severe_from.harm", "severe_from.none"]
    # the least severe label of all would make every answer severe
    with pytest.raises(SetupError):
        DecisionRule(severe_from={"harm": "a"}).check(rubric())
    with pytest.raises(SetupError, match="nominal"):
        DecisionRule(severe_from={"harm": "b"}).check(rubric(metric("nominal")))


def test_the_rule_is_told_in_words_with_its_numbers() -> None:
    words = " ".join(rule_sentences(DecisionRule(severe_from={"harm": "b"})))
    for part in ("5 points", "80 %", "10 %", "50 %", "every baseline", "harm"):
        assert part in words
    silent = DecisionRule.model_validate(
        {"replace": {"severe": None, "robustness": None, "planted": None, "controls": False}}
    )
    words = " ".join(rule_sentences(silent))
    assert "baseline" not in words
    assert "severe answers" not in words.partition("ASSIST requires")[0]


def test_a_rule_may_be_a_mapping_and_is_checked_as_a_file_is() -> None:
    given = {"replace": {"humans": {"margin": 0.1}}}
    assert rule_for(given, rubric(metric())).replace.humans.margin == 0.1
    with pytest.raises(SetupError, match=r"rule: replace.humans.margn: .*did you mean 'margin'"):
        rule_for({"replace": {"humans": {"margn": 0.1}}}, rubric(metric()))
    with pytest.raises(SetupError, match=r"^severe_from.nope: is not a metric"):
        rule_for({"severe_from": {"nope": "a"}}, rubric(metric()))


def test_a_rule_that_is_nowhere_is_answered_with_the_shipped_rules() -> None:
    with pytest.raises(SetupError, match=r"no file 'norule.yaml'.*; shipped: decision$"):
        load_rule("norule.yaml")


def test_every_wrong_key_of_a_bar_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(
        "replace: {humans: {bar: typcal}, severe: {margin: 2}}\nrare: 0\nindependent: my-judge\n"
    )
    with pytest.raises(SetupError) as caught:
        load_rule(path)
    assert [str(problem).split("ours.yaml", 1)[1] for problem in caught.value.problems] == [
        ":1: replace.humans.bar: must be 'typical', 'average' or 'best'; did you mean "
        "'typical'?; found 'typcal'",
        ":1: replace.severe.margin: must be less than or equal to 1; found 2",
        ":2: rare: must be greater than or equal to 1; found 0",
        ":3: independent: must be a list; found 'my-judge'",
    ]
