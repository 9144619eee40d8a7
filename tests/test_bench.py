"""bench.yaml is checked whole, with everything it names, before anybody is asked."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from judgebench.errors import SetupError
from judgebench.runs.bench import Bench
from judgebench.runs.load import load_bench

Load = Callable[[str], Bench]
Told = Callable[[str], list[str]]
HEAD = "name: x\nrubric: support-tone\ndata: [answers.csv, labels.csv]\n"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load bench.yaml of this text, beside two answers, three labels and a script."""
    (tmp_path / "answers.csv").write_text("item_id,text\ni0,Hello.\ni1,Goodbye.\n")
    (tmp_path / "labels.csv").write_text(
        "item_id,annotator,politeness\ni0,ann,Polite\ni1,ann,Impolite\ni1,bob,Polite\n"
    )
    (tmp_path / "s.jsonl").write_text('{"text": "{}"}\n')

    def of(text: str) -> Bench:
        path = tmp_path / "bench.yaml"
        path.write_text(text.replace("SCRIPT", f"scripted:{tmp_path}/s.jsonl"))
        return load_bench(path)

    return of


@pytest.fixture
def told(load: Load, tmp_path: Path) -> Callable[[str], list[str]]:
    """The problems that a text is refused for, without the folder's name."""

    def of(text: str) -> list[str]:
        with pytest.raises(SetupError) as caught:
            load(text)
        return [str(p).replace(f"{tmp_path}/", "") for p in caught.value.problems]

    return of


def test_a_script_lies_beside_the_benchmark(load: Load) -> None:
    bench = load(HEAD + "judges:\n  - {name: a, backend: 'scripted:s.jsonl'}\n")
    assert [judge.name for judge in bench.judges] == ["a"]
    bench.close()


def test_everything_a_benchmark_names_is_there(load: Load) -> None:
    bench = load(
        HEAD + "judges:\n  - {name: a, backend: SCRIPT}\n  - {name: b, backend: SCRIPT}\n"
        "  - {name: j, jury: [a, b, random]}\n"
    )
    assert [judge.name for judge in bench.judges] == ["a", "b"]
    assert [jury.name for jury in bench.juries] == ["j"]
    assert len(bench.controls) == 5
    assert len(bench.dataset.answers) == 2
    bench.close()


def test_two_judges_of_one_file_report_its_cells_once(load: Load, tmp_path: Path) -> None:
    (tmp_path / "verdicts.csv").write_text(
        "item_id,judge,politeness\ni0,a,Impolite\ni1,a,Oops\ni0,b,Polite\ni1,b,Polite\n"
    )
    bench = load(
        HEAD + "judges:\n  - {name: a, verdicts: verdicts.csv}\n"
        "  - {name: b, verdicts: verdicts.csv}\n"
    )
    (warning,) = (str(w) for w in bench.dataset.warnings if "verdicts.csv" in str(w))
    assert "not a label of the metric 'Politeness': counted as unparsed (1 time, row 3)" in warning


def test_limit_keeps_the_first_answers_and_their_labels(load: Load, tmp_path: Path) -> None:
    load(HEAD)
    dataset = load_bench(tmp_path / "bench.yaml", limit=1).dataset
    assert [a.item_id for a in dataset.answers] == ["i0"]
    assert {label.item_id for label in dataset.labels} == {"i0"}


@pytest.mark.parametrize(("controls", "n"), [("false", 0), ("true", 5), ("[random, prior]", 2)])
def test_controls_run_unless_switched_off(load: Load, controls: str, n: int) -> None:
    assert len(load(HEAD + f"controls: {controls}\n").controls) == n


def test_problems_of_the_settings_are_told_at_once_and_first(told: Told) -> None:
    found = told(HEAD + "judges: [none.yaml]\ntruth: {rule: mean}\nresamples: 5\n")
    assert [line[:81] for line in found] == [
        "bench.yaml:5: truth.rule: must be 'median', 'majority', 'each' or 'dawid_skene'; ",
        "bench.yaml:6: resamples: is not a known key; allowed: name, rubric, data, data_fo",
    ]


def test_problems_of_rubric_judges_and_data_are_told_at_once_with_their_lines(told: Told) -> None:
    found = told(
        "name: x\n"
        "rubric: support-tone\n"
        "data: [answers.csv, none.csv]\n"
        "judges:\n"
        "  - name: a\n"
        "    backend: openai:gpt\n"
        "    promt: brackets\n"
        "  - {name: c, backend: SCRIPT, parse_retries: 99}\n"
    )
    for part in (
        "bench.yaml:6: backend: is no backend (allowed: litellm:MODEL",
        "bench.yaml:7: promt: is not a known key; did you mean 'prompt'?",
        "bench.yaml:8: parse_retries: must be less than or equal to 5; found 99",
        "none.csv",
    ):
        assert sum(part in line for line in found) == 1, (part, found)
    assert len(found) == 4


def test_what_is_missing_leaves_the_rest_unchecked(told: Told) -> None:
    assert told("name: x\ntruth: {rule: mean}\n") == [
        "bench.yaml:1: rubric: Field required",
        "bench.yaml:2: truth.rule: must be 'median', 'majority', 'each' or 'dawid_skene'; "
        "found 'mean'",
    ]


def test_a_judge_in_a_file_of_its_own_is_told_with_that_file(told: Told, tmp_path: Path) -> None:
    (tmp_path / "judge.yaml").write_text("name: a\nbackend: SCRIPT\nmode: both\n")
    found = told(HEAD + "judges: [judge.yaml, none.yaml]\n")
    assert any(line.startswith("judge.yaml:3: mode: ") for line in found)
    assert "none.yaml: no such file" in found


def test_an_unknown_benchmark_lists_the_shipped_ones() -> None:
    with pytest.raises(SetupError, match="demo, liveqa, medical-safety-crowd"):
        load_bench(Path("no-such-benchmark"))


JUDGES = (
    "judges:\n  - {name: a, backend: SCRIPT, probabilities: independent}\n"
    "  - {name: plain, backend: SCRIPT}\n"
)


JUDGE = "{name: a, backend: SCRIPT%s}"
NO_MODEL = "is no judge with probabilities; found"


def judges(*entries: str) -> str:
    return HEAD + "judges: [" + ", ".join(entries) + "]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (HEAD.replace("support-tone", "suport-tone"),
         "rubric: there is no file 'suport-tone', and nothing shipped has that name"),
        (HEAD + "metrics: [politeness, colour]\n", "metrics.colour: "),
        (judges(JUDGE % "", JUDGE % ""), "judges: two judges have this name, or a baseline has it"),
        (judges(JUDGE % "", "{name: A, backend: SCRIPT}"), "judges: two judges have this name"),
        (judges("{name: Random, backend: SCRIPT}"), "judges: two judges have this name"),
        (judges("{name: con, backend: SCRIPT}"), "name: names a device"),
        (judges("{name: COM1.txt, backend: SCRIPT}"), "name: names a device"),
        (judges("{name: random, backend: SCRIPT}"), "judges: two judges have this name, or a base"),
        (judges(JUDGE % "", "{name: j, jury: [a, z]}"),
         "judges.j.jury: is no judge of this benchmark; found z"),
        (judges("{name: h, lern: head, encoder: words}"),
         "lern: is not a known key; did you mean 'learn'?"),
        (judges("{name: h, learn: lora, model: smollm2, rank: many}"),
         "rank: must be a valid integer; found 'many'"),
        (judges("{name: h, learn: head, encoder: words}",
                "{name: r, learn: recalibrate, from: [h]}"),
         "judges.r.from: is a judge that learns itself: no other one learns from it; found h"),
        (judges(JUDGE % ", prompt: prometheus, mode: per_metric"),
         "judges.a.thresholds: are needed by the prompt pro"),
        (judges(JUDGE % ", settings: {timeout_s: 3}"),
         "judges.a.settings.timeout_s: means nothing to a scripted"),
        (judges(JUDGE % ", prompt: with-reference"),
         "judges.a.prompt: the prompt with-reference asks for a reference"),
        (judges("{name: v, backend: 'vllm:m', probabilities: independent}"),
         "judges.v.probabilities: each label depends on"),
        (HEAD + "gardening: {}\n", "gardening: is not a known key; allowed: "),
        (HEAD + JUDGES + "  - {name: c, calibrate: plain}\n",
         f"judges.c.calibrate: {NO_MODEL} plain; allowed: a"),
        *((HEAD + JUDGES + f"  - {{name: c, calibrate: {of}}}\n",
           f"judges.c.calibrate: {NO_MODEL} {of}; allowed: a") for of in ("nobody", "random", "c")),
    ],
)  # fmt: skip
def test_a_problem_names_its_key(told: Told, text: str, problem: str) -> None:
    (line,) = told(text)
    assert re.sub(r"^bench\.yaml:(\d+:)? ", "", line).startswith(problem)
