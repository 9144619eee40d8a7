"""Likelihoods of a model whose probabilities are all known."""

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markov import LETTERS, NEXT, Chain

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.models.contract import Draws, Message
from judgebench.models.token_scoring import TokenWeigher
from judgebench.records import Answer, signature_of
from judgebench.scorers.config import scorer_config
from judgebench.scorers.judges import open_scorer
from judgebench.scorers.model_scorers import relaxed_cross_entropy
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, KeptScores, Scored, Scorer

CHAIN = {"backend": "python:markov:backend"}
ASKED = (Message("user", "a"),)


def opened(scorer: str, answers: list[Answer] | None = None, **how: Any) -> Scorer:
    return open_scorer(scorer_config({"scorer": scorer, **CHAIN, **how}), answers or [], Path())


def of(scorer: str, answer: Answer, **how: Any) -> Scored:
    return opened(scorer, [answer], **how).score([answer])[0]


def weigher(**how: Any) -> TokenWeigher:
    chain = Chain(**how)
    return TokenWeigher(chain, chain)


def log_p(text: str) -> float:
    """Of a text behind the first letter, by hand."""
    ids = [LETTERS.index(letter) for letter in "^" + text]
    return sum(math.log(NEXT[a, b]) for a, b in pairwise(ids))


def test_perplexities_are_one_number_in_three_units() -> None:
    answer = Answer("1", "ab b", question="ba")
    bits = of("bits-per-byte", answer).value
    assert bits == pytest.approx(-log_p("ab b") / math.log(2) / 4)
    assert of("byte-perplexity", answer).value == pytest.approx(2**bits)
    assert of("word-perplexity", answer).value == pytest.approx(2 ** (bits * 4 / 2))


def test_what_is_given_stands_before_the_text() -> None:
    answer = Answer("1", "ab", question="b")
    for how, before in (("question", "b"), ("b {question}", "b b")):
        bits = of("bits-per-byte", answer, given=how).value
        expected = -(log_p(before + "ab") - log_p(before)) / math.log(2) / 2
        assert bits == pytest.approx(expected)


def test_a_reference_or_a_column_is_weighed_in_the_answers_place() -> None:
    answer = Answer("1", "b", reference='["a", "ab"]', metadata={"must_have": "bb"})
    bits = [of("bits-per-byte", Answer("1", text)).value for text in ("a", "ab", "bb")]
    assert of("bits-per-byte", answer, of="reference").value == pytest.approx(np.mean(bits[:2]))
    assert of("bits-per-byte", answer, of="must_have").value == pytest.approx(bits[2])


def test_what_cannot_be_scored_says_why_and_changes_no_neighbour() -> None:
    answers = [Answer("1", "ab"), Answer("2", " "), Answer("3", "ba")]
    found = opened("bits-per-byte").score(answers)
    assert found[1] == Scored.none(EMPTY_ANSWER)
    assert [found[0], found[2]] == opened("bits-per-byte").score([answers[0], answers[2]])
    assert of("bits-per-byte", answers[0], of="reference") == Scored.none(NO_REFERENCE)
    asked = of("bits-per-byte", answers[0], given="question")
    assert asked == Scored.none("the question is empty")
    blank = Answer("4", "ab", metadata={"must_have": ""})
    assert of("bits-per-byte", blank, of="must_have").reason == "the column must_have is blank"


def test_an_unlikely_text_of_many_bytes_has_no_word_perplexity() -> None:
    long = of("word-perplexity", Answer("1", "ab" * 500))
    assert long == Scored.none("the perplexity is larger than any number")


def test_a_text_that_the_window_does_not_hold_is_refused() -> None:
    long, short = weigher(window=8).weigh([((Message("user", "a" * 9),), "b"), ("", "b" * 8)])
    assert long.reason == "the text with what stands before it has 11 tokens, and the model reads 8"
    assert short.log_p
    draws = Draws(2, 8, 1.0, 1.0, 1, 0)
    told = weigher(window=8).draw(ASKED, ["b"], draws)
    assert told.reason == "prompt, completion and target has 11 tokens, and the model reads 8"


def test_a_control_token_in_a_text_is_text() -> None:
    assert of("bits-per-byte", Answer("1", "a^b")).value == pytest.approx(
        -log_p("ab") / math.log(2) / 3
    )


def test_relaxed_perplexity_is_the_formula_of_the_paper() -> None:
    """Two completions, places 0 and 2, one of which is behind two different beginnings."""
    draws = Draws(2, 4, 1.0, 0.9, 2, 0)
    told = weigher(fixed=[[1, 2, 1], [2, 2]]).draw(ASKED, ["ab"], draws)
    p = NEXT
    at_0 = p[1, 1] * p[1, 2]  # one beginning, that of no token
    at_2 = [p[2, 1] * p[1, 2], p[2, 1] * p[1, 2]]  # both stand behind a b
    found, last = relaxed_cross_entropy(told.drawn, [0], best=2, weighted=False)
    assert (found, last) == (pytest.approx(-math.log(at_0) - math.log(sum(at_2))), 2)
    best, _ = relaxed_cross_entropy(told.drawn, [0], best=1, weighted=False)
    assert best == pytest.approx(-math.log(at_0) - math.log(at_2[0]))
    beginnings = [p[1, 1] * p[1, 2], p[1, 2] * p[2, 2]]
    weighted, _ = relaxed_cross_entropy(told.drawn, [0], best=2, weighted=True)
    shares = sum(a * b for a, b in zip(beginnings, at_2, strict=True))
    assert weighted == pytest.approx(-math.log(at_0) - math.log(shares))


def test_the_sum_without_weights_can_exceed_one() -> None:
    """Three different beginnings, behind each of which the target is likely."""
    told = weigher(fixed=[[2, 1], [1, 1], [3, 1]]).draw(ASKED, ["b"], Draws(3, 2, 1.0, 0.9, 2, 0))
    assert relaxed_cross_entropy(told.drawn, [0], 3, False)[0] < -math.log(0.6)  # 3 * 0.6 at 2
    assert relaxed_cross_entropy(told.drawn, [0], 3, True)[0] > -math.log(0.6)


def test_the_exponent_is_divided_by_the_last_place_and_the_targets_length() -> None:
    answer = Answer("1", "", question="a", reference="ab")
    how = {"samples": 20, "max_tokens": 8, "stride": 4, "best": 5}
    entropy = of("relaxed-cross-entropy", answer, **how).value
    perplexity = of("relaxed-perplexity", answer, **how).value
    assert perplexity == pytest.approx(math.exp(entropy / (8 + 2)))


def test_statements_count_one_by_one() -> None:
    listed = Answer("1", "", question="a", metadata={"must_have": '["ab", "b"]'})
    parts = [Answer("1", "", question="a", metadata={"must_have": text}) for text in ("ab", "b")]
    how = {"of": "must_have", "max_tokens": 8}
    values = [of("relaxed-cross-entropy", one, **how).value for one in (listed, *parts)]
    assert values[0] == pytest.approx(np.mean(values[1:]))


def test_scores_repeat_and_depend_on_the_seed() -> None:
    answer = Answer("1", "", question="a", reference="ab")
    how = {"samples": 3, "max_tokens": 8, "stride": 1}
    first = of("relaxed-perplexity", answer, **how)
    assert of("relaxed-perplexity", answer, **how) == first
    assert of("relaxed-perplexity", answer, seed=1, **how) != first


def test_the_signature_holds_what_numbers_depend_on() -> None:
    plain = opened("bits-per-byte")
    assert plain.about["prefix"] == (
        "before a text alone BOS, else EOS; before a text given what the tokenizer puts there"
    )
    assert plain.about["engine"] == "chain"
    ways = ({}, {"stride": 16}, {"best": 10}, {"samples": 100}, {"given": "nothing"})
    made = {signature_of(opened("relaxed-perplexity", **how).about) for how in ways}
    assert len(made) == 5
    same = opened("relaxed-perplexity", name="other")
    assert signature_of(same.about) in made


def test_a_question_is_asked_once_for_all_its_answers(tmp_path: Path) -> None:
    kept = KeptScores(opened("relaxed-perplexity", max_tokens=8), tmp_path)
    answers = [Answer(str(i), "x", question="a", reference="ab") for i in range(4)]
    assert len(set(kept.of(answers))) == 1
    assert len((tmp_path / f"{kept.signature}.jsonl").read_text().splitlines()) == 1


def test_settings_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="'nothing', 'question', or a text that holds"):
        opened("bits-per-byte", given="the question")
    with pytest.raises(SetupError, match="is no column that the data keeps"):
        opened("bits-per-byte", of="must_have")
    (tmp_path / "replies.jsonl").write_text('{"text": "Yes."}\n')
    mute = {"scorer": "bits-per-byte", "backend": f"scripted:{tmp_path / 'replies.jsonl'}"}
    with pytest.raises(SetupError, match="does not say how likely a given text is"):
        open_scorer(scorer_config(mute), [], Path())


TEXTS = ("ab", "b a", "aab")


def along(text: str) -> list[float]:
    letters = map(LETTERS.index, text)
    return [math.log(NEXT[a, b]) for a, b in pairwise(letters)]


def bench_of(folder: Path, **scorer: Any) -> Path:
    rows = [f"i{i},ab,{text}" for i, text in enumerate(TEXTS)]
    (folder / "answers.csv").write_text("\n".join(["item_id,question,text", *rows]) + "\n")
    labels = [f"i{i},{who},Polite" for i in range(len(TEXTS)) for who in "xy"]
    (folder / "labels.csv").write_text("\n".join(["item_id,annotator,politeness", *labels]) + "\n")
    bench = {
        "name": "likely", "rubric": "support-tone", "data": ["answers.csv", "labels.csv"],
        "controls": False, "scorers": [{"scorer": "bits-per-byte", **scorer}],
    }  # fmt: skip
    (folder / "bench.yaml").write_text(json.dumps(bench))
    return folder / "bench.yaml"


def test_a_run_scores_texts_and_does_so_once(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, backend="python:markov:backend", given="question")
    (run,) = jb.run(bench, tmp_path / "run").beside["scorers"].runs
    expected = [-sum(along(f"b{text}")) / len(text) / math.log(2) for text in TEXTS]
    study = jb.run(bench, tmp_path / "run")
    assert study.scores(run.judged) == pytest.approx(expected)
    (kept,) = (tmp_path / "run").rglob("scorers/**/*.jsonl")
    assert len(kept.read_text().splitlines()) == len(TEXTS)


def test_a_scorer_that_asks_another_machine_is_refused_with_the_judges(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, backend="transformers:owner/name")
    with pytest.raises(SetupError) as refused:
        jb.load_bench(bench, local_only=True)
    (problem,) = refused.value.problems
    assert problem.message == "contacts another machine, which local-only forbids"
    assert (problem.field, problem.found) == ("scorers.bits-per-byte.backend", "huggingface.co")
