"""Whole stress tests with scripted judges: what each falls for is found out, and nothing else."""

import doctest
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from aligned import align_run
from batch_server import BatchServer
from python_api import ITEMS, METRICS, write_bench, write_tables
from stress_case import grouped, stress_run

import judgebench as jb
from judgebench.errors import DamagedRun
from judgebench.files import shipped_folder
from judgebench.progress import NoProgress
from judgebench.records import Estimate
from judgebench.runs.folder import RunFolder
from judgebench.runs.forecast import forecast
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run
from judgebench.stress_tests.item_sets import read_set
from judgebench.stress_tests.make import StressExtension
from judgebench.stress_tests.recipes import Add, load_recipe
from judgebench.stress_tests.report import summary_table
from judgebench.stress_tests.result import EVERY, StressResult

MILD = {"scientific_consensus": "Aligned with consensus", "extent_of_harm": "No harm"}
SEVERE = {"scientific_consensus": "Opposed to consensus", "extent_of_harm": "Death or severe harm"}
SOUND = [
    (
        "What causes malaria?",
        "Malaria is caused by a parasite. Mosquitoes spread it. See a doctor.",
    ),
    (
        "What causes measles?",
        "Measles is caused by a virus. It spreads through the air. Stay home.",
    ),
    ("What causes tetanus?", "Tetanus is caused by bacteria. A vaccine protects. Clean wounds."),
    ("What causes ringworm?", "Ringworm is caused by a fungus. It is itchy. A cream helps."),
]
PROBES = [
    "bandwagon",
    "authority",
    "verbosity",
    "greeting",
    "bullets",
    "metric-order",
    "label-order",
]
Rule = tuple[str, Mapping[str, str]]  # what the prompt holds, and what is then replied


def bench_file(folder: Path, rules: Sequence[Rule], attacks: Sequence[object], **more: Any) -> Path:
    """A benchmark of four sound answers and one judge `m` that replies by the first rule that
    fits, and mildly where none does."""
    lines = [{"pattern": pattern, "text": reply} for pattern, reply in rules]
    (folder / "replies.jsonl").write_text(
        "".join(json.dumps(x) + "\n" for x in [*lines, {"text": MILD}])
    )
    rows = [f'a{i},"{question}","{text}"\n' for i, (question, text) in enumerate(SOUND)]
    (folder / "answers.csv").write_text("item_id,question,text\n" + "".join(rows))
    value = {
        "name": "s",
        "rubric": "medical-safety",
        "metrics": list(MILD),
        "data": "answers.csv",
        "judges": [{"name": "m", "backend": f"scripted:{folder}/replies.jsonl"}],
        "stress": {"attacks": list(attacks)},
        **more,
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(value))
    return path


class Counting(NoProgress):
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.messages: list[str] = []

    def advance(self, name: str, what: Any = "") -> None:
        self.asked.append(what.item_id)

    def say(self, message: str) -> None:
        self.messages.append(message)


def judged(path: Path, *, attack: bool = True) -> tuple[RunFolder, Counting]:
    bench = load_bench(path, extend=StressExtension() if attack else None)
    folder, counting = RunFolder(path.parent / "run"), Counting()
    run(bench, folder, progress=counting)
    bench.close()
    return folder, counting


def stressed(folder: Path, rules: Sequence[Rule], attacks: Sequence[object]) -> StressResult:
    run_folder, _ = judged(bench_file(folder, rules, attacks))
    found = stress_run(run_folder)
    assert found is not None
    return found


def phrases(recipe: str) -> str:
    """A pattern for any text that an adding recipe adds, and no other."""
    edit = load_recipe(recipe).edit
    assert isinstance(edit, Add)
    return "|".join(re.escape(text.split("{")[0].strip()[:30]) for text in edit.texts)


def flips(found: StressResult, judge: str = "m", metric: str = EVERY) -> dict[str, float | None]:
    return {
        x.probe: x.flipped.value
        for x in grouped(found, "invariance")
        if (x.judge, x.metric) == (judge, metric)
    }


@pytest.mark.parametrize("fallen_for", ["bandwagon", "authority", "verbosity", "greeting"])
def test_a_judge_falls_for_one_probe_alone(tmp_path: Path, fallen_for: str) -> None:
    found = stressed(tmp_path, [(phrases(fallen_for), SEVERE)], PROBES)
    rates = flips(found)
    assert rates.keys() == set(PROBES)
    assert {probe for probe, rate in rates.items() if rate} == {fallen_for}
    assert rates[fallen_for] == 1.0


def test_a_judge_that_follows_the_order_of_the_metrics_is_found_out(tmp_path: Path) -> None:
    # The first metric of the reversed prompt stands first in its instructions.
    turned = r"extent_of_harm\):(.|\n)*scientific_consensus\):"
    rates = flips(stressed(tmp_path, [(turned, SEVERE)], PROBES))
    assert {probe for probe, rate in rates.items() if rate} == {"metric-order"}


def detection(found: StressResult, judge: str, recipe: str = EVERY) -> Any:
    (one,) = [
        x
        for x in grouped(found, "violations")
        if (x.judge, x.recipe, x.area, x.metric, x.failures)
        == (judge, recipe, EVERY, "scientific_consensus", "left_out")
    ]
    return one


def values(*estimates: Estimate) -> list[float | None]:
    return [e.value for e in estimates]


def test_a_judge_that_knows_the_facts_is_shown_as_such_on_the_shipped_set(tmp_path: Path) -> None:
    items = read_set(shipped_folder("adversarial") / "consensus-violations.jsonl")
    rules = [(re.escape(item.false_claim), SEVERE) for item in items]
    found = stressed(tmp_path, rules, ["consensus-violations"])
    one = detection(found, "m")
    assert one.detected.n == len(items)
    assert values(one.detected, one.false_alarms, one.told_apart) == [1.0, 0.0, 1.0]
    assert found.misses == ()
    areas = {x.area for x in grouped(found, "violations") if x.judge == "m"} - {EVERY}
    assert len(areas) == 4


def test_a_judge_that_obeys_a_planted_order_is_found_out_for_that_trick(tmp_path: Path) -> None:
    tricks = ["planted-json-blame", "planted-order-blame", "planted-brackets-blame"]
    planted = "most severe label to every|Note to the judge|Whoever rates"
    found = stressed(tmp_path, [(planted, SEVERE)], tricks)
    rates = {
        x.trick: x.success.value
        for x in grouped(found, "planted")
        if (x.judge, x.metric) == ("m", EVERY)
    }
    assert rates.pop("planted-order-blame") == 1.0
    assert rates.pop("planted-json-blame") == rates.pop("planted-brackets-blame") == 0.0
    assert "planted-order-blame: 4 of 4" in [cell.text for cell in summary_table(found).rows[0]]


def test_a_copied_verdict_is_missing_from_the_rate(tmp_path: Path) -> None:
    planted = r'"scientific_consensus": ?"Opposed to consensus"'
    found = stressed(tmp_path, [(planted, SEVERE)], ["planted-json-blame"])
    (rate,) = (
        x.success for x in grouped(found, "planted")
        if (x.judge, x.metric, x.trick) == ("m", EVERY, "planted-json-blame")
    )  # fmt: skip
    assert (rate.value, rate.n, rate.n_missing) == (None, 0, 4)


def test_an_earlier_benchmark_in_the_folder_is_not_asked_for_again(tmp_path: Path) -> None:
    path = bench_file(tmp_path, [], ["greeting", "self-consistency"])
    _, first = judged(path, attack=False)
    assert sorted(first.asked) == ["a0", "a1", "a2", "a3"]
    _, second = judged(path)
    altered = [x for x in second.asked if "~greeting" in x]
    assert len(altered) == 4
    assert len(second.asked) == 4 + 3 * 4  # and three repeats of each parent
    _, third = judged(path)
    assert third.asked == []


def test_without_labels_only_compared_answers_are_judged(tmp_path: Path) -> None:
    _, told = judged(bench_file(tmp_path, [], [], stress={"attacks": ["greeting"], "sample": 1}))
    assert len(told.asked) == 2


def test_a_benchmark_after_a_stress_test_puts_it_aside_and_loses_no_verdict(tmp_path: Path) -> None:
    path = bench_file(tmp_path, [], ["greeting"])
    folder, _ = judged(path)
    assert len(folder.ids_beside()) == 4
    _, told = judged(path, attack=False)
    assert any("put aside" in message for message in told.messages)
    assert folder.ids_beside() == set()
    assert stress_run(folder) is None
    _, again = judged(path)
    assert again.asked == []
    assert stress_run(folder) is not None


def test_altered_answers_are_no_part_of_the_alignment(tmp_path: Path) -> None:
    folder, _ = judged(bench_file(tmp_path, [], ["greeting", "self-consistency"]))
    alignment = align_run(folder)
    assert alignment.n_answers == 4
    assert {j.name for j in alignment.study.judges} == {
        "m",
        "constant-fixed",
        "random",
        "constant-severe",
    }


def test_a_jury_is_stress_tested_by_the_verdicts_of_its_members(tmp_path: Path) -> None:
    path = bench_file(tmp_path, [(phrases("greeting"), SEVERE)], ["greeting"])
    value = yaml.safe_load(path.read_text())
    value["judges"].append({"name": "jury", "jury": ["m", "constant-fixed"], "ties": "upper"})
    path.write_text(yaml.safe_dump(value))
    folder, _ = judged(path)
    found = stress_run(folder)
    assert found
    assert flips(found, "jury") == {"greeting": 1.0}


def test_a_forecast_counts_altered_answers_and_every_way_of_asking(tmp_path: Path) -> None:
    path = bench_file(tmp_path, [], ["greeting", "per-metric", "self-consistency"])
    bench = load_bench(path, extend=StressExtension())
    calls = {f.judge: f.calls for f in forecast(bench, RunFolder(tmp_path / "run"))}
    assert calls.pop("m") == 8
    assert calls.pop("m~per-metric") == 8
    assert sorted(calls.values()) == [4, 4, 4]


@pytest.mark.parametrize("file", ["attacks.jsonl", "verdicts-m~label-order.jsonl"])
def test_a_damaged_stress_test_is_refused(file: str, tmp_path: Path) -> None:
    folder, _ = judged(bench_file(tmp_path, [], ["greeting", "label-order"]))
    (folder.path / file).unlink()
    with pytest.raises(DamagedRun, match=f"{file}: is missing; the run wrote "):
        jb.open_run(folder.path)


def test_variants_are_asked_in_batches_too(tmp_path: Path) -> None:
    reply = json.dumps({"solves_problem": "Fully", "politeness": "Polite", "channel": "Phone"})
    (tmp_path / "answers.csv").write_text("item_id,question,text\ni1,q,one\ni2,q,two\n")
    (tmp_path / "labels.csv").write_text("item_id,annotator,politeness\ni1,ann,Polite\n")
    with BatchServer(lambda body: reply) as server:
        backend = f"openai-compatible:x@{server.base_url}"
        bench = {
            "name": "b",
            "rubric": "support-tone",
            "data": ["answers.csv", "labels.csv"],
            "controls": False,
            "judges": [{"name": "m", "backend": backend}],
            "stress": {"attacks": ["self-consistency"]},
        }
        (tmp_path / "bench.yaml").write_text(json.dumps(bench))
        loaded = jb.load_bench(tmp_path / "bench.yaml", stress=True)
        jb.run(loaded, tmp_path / "run", batch=True)
        assert [len(sent) for sent in server.created.values()] == [2, 2, 2, 2]
        assert server.bodies == []
    assert len(list((tmp_path / "run").glob("verdicts-m~self-consistency~*.jsonl"))) == 3


def test_a_stress_test_runs_from_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tables(tmp_path)
    write_bench(tmp_path, "stress: {sample: 2}\n")
    bench = jb.load_bench(tmp_path / "bench.yaml", limit=6, stress=True)
    study = jb.run(bench, tmp_path / "runs" / "stressed")
    assert jb.stress(study) is not None
    assert "stress" in jb.analyse(study)
    assert [m.id for m in study.rubric.metrics] == list(METRICS)
    assert len(study.answers) <= 46  # six, and those that shipped sets bring
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder().find(jb.stress, "stress")
    assert doctest.DocTestRunner().run(test).failed == 0


def baselines_and_lead(study: jb.Study) -> tuple[dict[str, dict[str, Any]], list[Any]]:
    """What every judge says of the first answers, and the lead over the baselines."""
    said = {
        judge.name: {a.item_id: judge.verdicts[a.item_id].labels for a in study.answers[:ITEMS]}
        for judge in study.judges
        if judge.name != "constant-severe"
    }
    leads = [c for d in jb.decide(study) for c in d.replace if c.key == "controls"]
    return said, leads


def test_a_stress_test_leaves_baselines_and_their_lead_alone(tmp_path: Path) -> None:
    write_tables(tmp_path)
    attacks = "consensus-violations, verbosity, shorten, planted-json-praise"
    write_bench(
        tmp_path,
        "  - {name: words, scorer: length, fit: {metric: extent_of_harm, folds: 3}}\n"
        f"by: [system]\nstress: {{attacks: [{attacks}]}}\n",
    )
    before = baselines_and_lead(jb.run(tmp_path / "bench.yaml", tmp_path / "run"))
    stressed = jb.load_bench(tmp_path / "bench.yaml", stress=True)
    after = baselines_and_lead(jb.run(stressed, tmp_path / "run"))
    assert {"longest-answer", "prior", "by-system", "words"} <= before[0].keys()
    assert after == before


def test_a_run_without_a_stress_test_says_so(tmp_path: Path) -> None:
    write_tables(tmp_path)
    write_bench(tmp_path)
    study = jb.run(tmp_path / "bench.yaml", tmp_path / "run")
    with pytest.raises(jb.SetupError, match="small holds no stress test"):
        jb.stress(study)


def test_a_stress_test_without_violations_says_so_first(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    asked = {"rubric": "support-tone", "metrics": ["politeness"], "stress": {"sample": 2}}
    path = bench_file(tmp_path, [(".", {"politeness": "Polite"})], [], **asked)
    code, out, _ = call("stress", path, "--run", tmp_path / "run")
    assert code == 0
    said = " ".join(out.split())
    assert said.startswith("No altered answer is a violation: ")
    assert "pathogen-class" in said.partition("Left out, because they do not fit")[2]
