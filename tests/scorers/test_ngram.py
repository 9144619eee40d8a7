"""Scorers that count shared words and characters give the numbers of their libraries."""

import csv
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER
from scipy.stats import spearmanr

import judgebench as jb
from judgebench.errors import MissingExtra
from judgebench.records import Answer, Status
from judgebench.scorers.config import scorer_config
from judgebench.scorers.judges import open_scorer
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, Scored, Scorer, references_of

NOTES = (
    ("The patient takes aspirin daily.", "She takes aspirin every day."),
    ("No allergies. BP 120/80.", "No known allergies; blood pressure 120/80."),
    ("Yes", "Yes."),
    ("It hurts on the left", "Chest X-ray was normal."),
)
OTHER = "Aspirin is taken by the patient."
PLAIN = ["rouge-1", "rouge-2", "rouge-l", "bleu", "chrf", "chrf++", "ter"]


def by_rouge(name: str, text: str, refs: Sequence[str]) -> float:
    from rouge_score.rouge_scorer import RougeScorer  # takes seconds, in every worker

    return float(RougeScorer([name]).score_multi(refs, text)[name][2])


# By the library, and several references by its own rule.
LIBRARY = {
    "rouge-1": lambda text, refs: by_rouge("rouge1", text, refs),
    "rouge-2": lambda text, refs: by_rouge("rouge2", text, refs),
    "rouge-l": lambda text, refs: by_rouge("rougeL", text, refs),
    "bleu": lambda text, refs: BLEU(effective_order=True).sentence_score(text, refs).score,
    "chrf": lambda text, refs: CHRF().sentence_score(text, refs).score,
    "chrf++": lambda text, refs: CHRF(word_order=2).sentence_score(text, refs).score,
    "ter": lambda text, refs: TER().sentence_score(text, refs).score,
}
texts = st.text(alphabet="abc é.\n1", max_size=12)


def opened(how: object, answers: Sequence[Answer] = ()) -> Scorer:
    return open_scorer(scorer_config(how), answers, Path())


def of(how: object, text: str, reference: str | None, **metadata: str) -> Scored:
    answer = Answer("1", text, reference=reference, metadata=metadata)
    return opened(how, [answer]).score([answer])[0]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(("text", "reference"), NOTES)
def test_the_score_is_that_of_the_library(name: str, text: str, reference: str) -> None:
    found = of(name, text, reference)
    if (text, name) == ("Yes", "rouge-2"):
        reason = "the reference has too few words of a-z and 0-9, which alone ROUGE reads"
        assert found == Scored.none(reason)
    else:
        assert found == Scored(LIBRARY[name](text, [reference]))


@pytest.mark.parametrize("name", PLAIN)
def test_several_references_by_the_rule_of_the_library(name: str) -> None:
    text, first = NOTES[0]
    own = LIBRARY[name](text, [first, OTHER])
    assert of(name, text, f'["{OTHER}", "{first}"]').value == pytest.approx(own)


def test_references_are_texts_of_a_list() -> None:
    assert references_of(Answer("1", "x", reference='["a", " ", "b"]')) == ("a", "b")
    for one in ("[1] Smith 2003", "[1, 2]", "[" * 100_000, "a"):
        assert references_of(Answer("1", "x", reference=one)) == (one,)
    assert references_of(Answer("1", "x")) == ()


def test_rouge_compares_stems_where_asked() -> None:
    text, reference = "patients recovering", "patient recovered"
    assert of("rouge-1", text, reference).value == 0
    assert of({"scorer": "rouge-1", "stemmer": True}, text, reference).value == 1


@given(st.lists(st.sampled_from("abcd"), min_size=1), st.lists(st.sampled_from("abcd"), min_size=1))
def test_rouge_l_is_the_librarys_to_the_last_bit(text: list[str], reference: list[str]) -> None:
    found = of("rouge-l", " ".join(text), " ".join(reference))
    assert found.value == by_rouge("rougeL", " ".join(text), [" ".join(reference)])


def test_rouge_l_of_30_000_words_takes_no_table_of_words() -> None:
    text = " ".join(f"w{i * i % 997}" for i in range(30_000))
    tracemalloc.start()
    assert of("rouge-l", text, f"{text} more").value == pytest.approx(1, abs=1e-4)
    assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    tracemalloc.stop()


def test_rouge_has_no_score_for_what_it_cannot_read() -> None:
    reason = "the answer has too few words of a-z and 0-9, which alone ROUGE reads"
    assert of("rouge-l", "Пациент здоров.", "The patient is well.") == Scored.none(reason)
    reason = "the reference has too few words of a-z and 0-9, which alone ROUGE reads"
    assert of("rouge-l", "The patient is well.", "Пациент здоров.") == Scored.none(reason)
    assert of("rouge-2", "Well.", "The patient is well.") == Scored(0.0)
    assert of("chrf", "Пациент здоров.", "Пациент болен.").value > 20


@pytest.mark.parametrize("how", PLAIN)
@given(items=st.lists(st.tuples(texts, st.none() | texts), max_size=6))
def test_no_answer_changes_another(how: object, items: list[tuple[str, str | None]]) -> None:
    scorer = opened(how)
    answers = [Answer(str(i), text, reference=ref) for i, (text, ref) in enumerate(items)]
    together = scorer.score(answers)
    assert together == [scorer.score([answer])[0] for answer in answers]
    for answer, found in zip(answers, together, strict=True):
        if not answer.text.strip():
            assert found == Scored.none(EMPTY_ANSWER)
        elif not (answer.reference or "").strip():
            assert found == Scored.none(NO_REFERENCE)
        assert (found.value is None) == (found.status is Status.SKIPPED) == bool(found.reason)


def test_signatures_hold_library_options_and_rule() -> None:
    assert opened("bleu").about == {
        "scorer": "bleu", "references": "joint",
        "signature": str(_after_scoring(BLEU(effective_order=True)).get_signature()),
    }  # fmt: skip
    signature = opened("chrf++").about["signature"]
    assert signature.startswith("nrefs:var|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.")
    rouge = opened({"scorer": "rouge-l", "stemmer": True}).about["signature"]
    assert rouge == "rougeL|measure:f1|stemmer:porter|rouge-score:0.1.2"


def _after_scoring(metric: BLEU) -> BLEU:
    """Of texts with one reference and with two."""
    metric.corpus_score(["a", "b"], [["a", "b"], ["c", None]])
    return metric


@pytest.mark.parametrize(
    ("how", "module", "package"),
    [("rouge-1", "rouge_score", "rouge-score"), ("ter", "sacrebleu.metrics", "sacrebleu")],
)
def test_a_missing_library_is_named(how, module, package, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"{how} needs the package {package}.*\[scorers\]"):
        opened(how)


def test_a_run_keeps_their_scores(tmp_path: Path) -> None:
    rows = ["item_id,text,reference,tone", "a,Yes.,Yes.,Good", "b,,Yes.,Poor", "c,No.,,Good"]
    (tmp_path / "data.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "rubric.yaml").write_text(
        "name: r\nversion: '1'\ninstructions: Judge.\nmetrics: [{id: tone, title: Tone, "
        "question: Is it kind, kind: ordinal, labels: [Good, Poor]}]\n"
    )
    bench = tmp_path / "bench.yaml"
    bench.write_text(
        "name: b\nrubric: rubric.yaml\ndata: data.csv\n"
        "scorers: [chrf++, {scorer: ter, name: edits}]\ncontrols: false\n"
    )
    study = jb.run(bench, tmp_path / "run")
    found = {run.name: run for run in study.beside["scorers"].runs}
    assert found["chrf++"].judged.verdicts["a"].score == 100
    assert found["edits"].judged.verdicts["a"].score == 0
    assert found["edits"].better == "lower"
    for item, reason in (("b", EMPTY_ANSWER), ("c", NO_REFERENCE)):
        verdict = found["chrf++"].judged.verdicts[item]
        assert (verdict.score, verdict.status, verdict.reason) == (None, Status.SKIPPED, reason)


def test_they_are_listed(call) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("list", "scorers")
    assert code == 0
    assert "  chrf                     chrF: up to six characters in a row (0 to 100)\n" in out


def test_notes_of_conversations_against_people(shared_data: Path) -> None:
    """Spearman with people's rates as measured once, with rouge-score 0.1.2 and sacrebleu 2.6
    (README of mts-dialog-scores)."""
    folder = shared_data / "mts-dialog-scores"
    files = [
        "MTS-Dialog-Automatic-Summaries-ValidationSet.csv",
        "MTS-Dialog-Manual-Scores4CorrelationStudy.csv",
    ]
    notes, rates = (
        list(csv.DictReader((folder / f).open(encoding="utf-8-sig", newline=""))) for f in files
    )
    answers = [
        Answer(str(i), row["Automatic Summary"], reference=row["Reference Summary"])
        for i, row in enumerate(notes)
    ]
    for name, omitted in (("chrf", -0.65), ("rouge-1", -0.47)):
        scores = [one.value for one in opened(name).score(answers)]
        for column, expected, within in (
            ("OmissionRate", omitted, 0.005), ("HallucinationRate", 0.0, 0.17)
        ):  # fmt: skip
            rho = spearmanr(scores, [float(row[column]) for row in rates]).statistic
            assert rho == pytest.approx(expected, abs=within)
