"""Decide published studies again that come with the verdicts of judges.

    python examples/audit/audit.py FOLDER

FOLDER holds the files as published: xstest-verdicts/, mtbench-human/ and medical-safety-crowd/.
Prints the tables of docs/audit.md as Markdown: the authors' figures beside ours, our decisions with
controls, human ceiling and intervals, and the Alternative Annotator Test. No model is called.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import judgebench as jb
from judgebench.alignment.comparisons import comparisons
from judgebench.records import Answer
from judgebench.stats.alternative_test import DuelTerms, alternative_annotator_test
from judgebench.studies.study import JudgeVerdicts, Study

HERE = Path(__file__).parent
EPSILONS = (0.0, 0.05, 0.1, 0.15, 0.2)
CONSTANT, BLIND = "always the same", "blind rule"
CONSISTENT = "gpt-4-consistent"


# ---- the files as published ---------------------------------------------------------------------


def opened(name: str, data_folder: Path, runs: Path) -> Study:
    """The study that NAME/bench.yaml describes; its run folder is in `runs`."""
    return jb.run(jb.load_bench(HERE / name / "bench.yaml", data_folder=data_folder), runs / name)


def votes(file: Path) -> pd.DataFrame:
    """One row per vote of MT-bench, with the two models in alphabetical order.

    Where the order of the answers changed GPT-4's mind, the verdict is `tie (inconsistent)`: a tie
    in `label`, as in the paper, and no label of the rubric in `consistent`.
    """
    found = pd.read_json(file, lines=True)
    swapped = found.model_a > found.model_b
    first, second = (found[["model_a", "model_b"]].agg(f, axis=1) for f in ("min", "max"))
    label = ((found.winner == "model_a") ^ swapped).map({True: "first", False: "second"})
    label = label.mask(found.winner.str.startswith("tie"), "tie")
    question = found.question_id.astype(str)
    return found.assign(
        item_id=question + "/" + first + "/" + second, group=question, label=label,
        metric="turn_" + found.turn.astype(str),
        consistent=label.mask(found.winner == "tie (inconsistent)", "inconsistent"),
    )  # fmt: skip


def mtbench(folder: Path, kept: Sequence[str] = ("first", "second", "tie"), **truth: str) -> Study:
    """The experts' votes that are in `kept`, and GPT-4's verdicts on the same comparisons."""
    human = votes(folder / "human.jsonl.gz").rename(columns={"judge": "annotator"})
    human = human[human.annotator.str.startswith("expert") & human.label.isin(kept)]
    gpt4 = votes(folder / "gpt4_pair.jsonl.gz")
    gpt4 = gpt4[gpt4.item_id.isin(human.item_id)]
    said = [gpt4[gpt4.label.isin(kept)].assign(judge="gpt-4")]
    if "tie" in kept:
        said.append(gpt4.assign(judge=CONSISTENT, label=gpt4.consistent))
    return jb.study(
        human[["item_id", "group", "annotator", "metric", "label"]],
        pd.concat(said)[["item_id", "judge", "metric", "label"]],
        rubric=HERE / "mtbench" / "rubric.yaml",
        truth={"rule": "majority", **truth},
    )


# ---- judges that read nothing -------------------------------------------------------------------


def prompt_kind(answer: Answer) -> str:
    """Whether a prompt of XSTest is safe."""
    return "unsafe" if str(answer.metadata["type"]).startswith("contrast_") else "safe"


def system_and_kind(answer: Answer) -> str:
    """Which system answered, and whether the prompt is safe."""
    return f"{answer.system} {prompt_kind(answer)}"


def pair_of_models(answer: Answer) -> str:
    """Which two models are compared in an item of MT-bench."""
    return answer.item_id.partition("/")[2]


def only_system(answer: Answer) -> str:
    """Which system answered; nothing for a query."""
    return answer.system or ""


def with_rules(study: Study, known: Callable[[Answer], str]) -> Study:
    """The study with two more judges that read no answer: one that always says the commonest human
    label, and a blind rule that says the commonest one among the items of which the same is known.
    The rule learns from the other half of the questions, never from the labels it is scored on."""
    (same,) = (judge for judge in study.judges if judge.name == "constant-majority")
    constant = replace(same, name=CONSTANT, kind="judge")
    half = study.clusters.codes % 2
    what = [known(answer) for answer in study.answers]
    labels: dict[int, dict[str, str]] = defaultdict(dict)
    for metric in study.rubric.metrics:
        ratings = study.humans[metric.id].ratings
        counts: dict[tuple[int, str], Counter[int]] = defaultdict(Counter)
        for row, given in zip(ratings.rows, ratings.values, strict=True):
            counts[half[row], what[row]].update(given[given >= 0].tolist())
        for row in ratings.rows:
            if others := counts[1 - half[row], what[row]]:
                labels[row][metric.id] = metric.label_texts[others.most_common(1)[0][0]]
    verdicts = {}
    for row, said in labels.items():
        item, hashed = study.answers[row].item_id, study.answers.content_hash(row)
        verdicts[item] = jb.Verdict(item, hashed, BLIND, "1", jb.Status.OK, said)
    blind = JudgeVerdicts(BLIND, "judge", "1", verdicts)
    return replace(study, judges=(*study.judges, constant, blind))


# ---- the authors' figures -----------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """A number as the authors printed it, and what the files give."""

    source: str
    what: str
    printed: str
    value: float

    @property
    def same(self) -> bool:
        """To the last digit that was printed."""
        decimals = len(self.printed.partition(".")[2])
        return f"{self.value:.{decimals}f}" == self.printed


def authors_figures(name: str, study: Study, folder: Path) -> list[Figure]:
    """What NAME/published.py yields."""
    spec = spec_from_file_location(f"published_{name}", HERE / name / "published.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return [Figure(*figure) for figure in module.figures(study, folder)]


def figure_rows(title: str, figures: Sequence[Figure]) -> Iterator[list[str]]:
    """How many figures of each source are the same, and which are not."""
    for source in dict.fromkeys(figure.source for figure in figures):
        of = [figure for figure in figures if figure.source == source]
        others = [f"{f.what}: {f.printed} printed, {f.value:.4g} found" for f in of if not f.same]
        same = str(sum(figure.same for figure in of))
        yield [title, source, str(len(of)), same, "; ".join(others) or "none"]


def crowd_rows(study: Study) -> Iterator[list[str]]:
    """How often a label of the crowd, and the crowd's reference label, is the expert's."""
    (expert,) = (judge for judge in study.judges if judge.name == "expert")
    for metric in study.rubric.metrics:
        humans = study.humans[metric.id]
        of_expert = study.judged(expert, metric)[humans.ratings.rows]
        labels, truth = humans.ratings.values, humans.truth[humans.ratings.rows]
        single = (labels == of_expert[:, None])[labels >= 0]
        together = (truth == of_expert)[truth >= 0]
        shares = [f"{x.mean():.3f} of {len(x):,}" for x in (single, together)]
        yield [metric.title, *shares, str(((truth < 0) & (labels >= 0).any(axis=1)).sum())]


def refusal_rows(study: Study) -> Iterator[list[str]]:
    """What share of the replies to safe prompts each judge calls refused, by system."""
    metric, humans = study.rubric.metrics[1], study.humans["refused"]
    answers = list(study.answers)
    safe = np.array([prompt_kind(answer) == "safe" for answer in answers])
    said = {"annotators": humans.truth} | {
        judge.name: study.judged(judge, metric)
        for judge in study.judges
        if judge.kind == "judge" and judge.name not in (CONSTANT, BLIND)
    }
    systems = np.array([answer.system for answer in answers])
    for name, labels in said.items():
        by = [labels[safe & (systems == s) & (labels >= 0)] for s in dict.fromkeys(systems)]
        yield [name, *(f"{100 * of.mean():.1f}" for of in by)]


# ---- our decisions ------------------------------------------------------------------------------


def shown(number: pd.Series, sign: str = "") -> str:
    """`0.812 [0.774, 0.850]`"""
    if pd.isna(number.value):
        return "–"
    interval = f" [{number.low:{sign}.3f}, {number.high:{sign}.3f}]"
    return f"{number.value:{sign}.3f}" + ("" if pd.isna(number.low) else interval)


def decision_rows(
    title: str, study: Study, left_out: Sequence[str] = (CONSTANT,)
) -> Iterator[list[str]]:
    """Each judge on each metric: what we decide, and what it rests on."""
    found = jb.decide(study).to_frame()
    controls = [judge.name for judge in study.judges if judge.kind == "control"]
    for decision in found[found.analysis == "decision"].itertuples():
        if decision.judge in left_out:
            continue
        of = found[found.metric == decision.metric]
        accuracy = of[of.statistic == "accuracy"]
        (ceiling,) = accuracy[accuracy.who == "all"].itertuples()
        scores = accuracy[accuracy.failures == "left_out"].set_index("judge")
        score, best = scores.loc[decision.judge], scores.loc[controls].value.max()
        gap = of[(of.judge == decision.judge) & (of.statistic == "humans_accuracy")].iloc[0]
        yield [
            title, study.rubric.find(decision.metric).title, decision.judge,
            f"{score.n:,}", f"{score.n_missing:,}", shown(score), f"{best:.3f}", shown(ceiling),
            f"{shown(gap, '+')} ≥ {gap.bound:+.3f}", f"**{decision.outcome}**",
        ]  # fmt: skip


def blind_rows(title: str, study: Study) -> Iterator[list[str]]:
    """Each judge's accuracy minus that of the blind rule, on the same items."""
    real = [j for j in study.judges if j.kind == "judge" and j.name != CONSTANT]
    for metric in study.rubric.metrics:
        for row in comparisons(replace(study, judges=(*real,)), metric):
            if row.statistic == "accuracy_difference" and row.keys["who"] == BLIND:
                of = row.estimate
                yield [title, metric.title, row.judge, f"{of.n:,}", f"{of:+.3f}"]


def alternative_row(
    title: str, study: Study, metric_id: str, only: Callable[[Answer], bool] = lambda answer: True
) -> list[str]:
    """From which epsilon on each judge passes the test of Calderon et al. (2025).

    Places in a list are taken for people here, as by whoever reads the file as a table. judgebench
    itself does not test them. `only` some answers count.
    """
    metric, ratings = study.rubric.find(metric_id), study.humans[metric_id].ratings
    kept = np.array([only(study.answers[row]) for row in ratings.rows])
    values, k = ratings.values[kept], len(metric.labels)
    judges = {judge.name: judge for judge in study.judges if judge.kind == "judge"}

    def passes(name: str, balanced: bool = False) -> str:
        labels = study.judged(judges[name], metric)[ratings.rows][kept]
        scores = metric.severities if metric.kind == "ordinal" and not balanced else None
        for epsilon in EPSILONS:
            terms = DuelTerms(epsilon, balanced=balanced, severities=scores)
            if alternative_annotator_test(values, labels, k, terms).passes:
                return f"{epsilon:g}"
        return "never"

    given = np.bincount(values[values >= 0], minlength=k)
    tested = alternative_annotator_test(values, values.max(axis=1), k).tested
    real = [name for name in judges if name not in (CONSTANT, BLIND, CONSISTENT)]
    return [
        title, f"{given.max() / given.sum():.0%} {metric.label_texts[int(given.argmax())]}",
        str(tested), passes(CONSTANT), passes(BLIND), ", ".join(f"{n} {passes(n)}" for n in real),
        ", ".join(dict.fromkeys(passes(name, balanced=True) for name in (CONSTANT, BLIND))),
    ]  # fmt: skip


def lines_of(name: str) -> Iterator[str]:
    """Lines of YAML without blank ones and comments: of the rubric, and of all else."""
    for pattern in ("rubric.yaml", "[bd]*.yaml"):
        texts = [file.read_text("utf-8") for file in (HERE / name).glob(pattern)]
        lines = [line.strip() for text in texts for line in text.splitlines()]
        yield str(sum(not line.startswith("#") for line in lines if line))


# ---- the page -----------------------------------------------------------------------------------


def table(heading: str, columns: str, rows: Iterator[list[str]] | Sequence[Sequence[str]]) -> str:
    """A heading and a table; `columns` are parted by bars."""
    names = [name.strip() for name in columns.split("|")]
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join([f"### {heading}", "", *(f"| {' | '.join(line)} |" for line in lines), ""])


def tables(folder: Path, runs: Path) -> str:
    """Every table of docs/audit.md; run folders are in `runs`."""
    sets = [folder / name for name in ("xstest-verdicts", "mtbench-human", "medical-safety-crowd")]
    x = with_rules(opened("xstest", sets[0], runs), system_and_kind)
    m = with_rules(mtbench(sets[1]), pair_of_models)
    c = with_rules(opened("medical-safety-crowd", sets[2], runs), only_system)
    studies = {"XSTest": x, "MT-bench": m, "Medical queries": c}
    figures = [
        *figure_rows("XSTest", authors_figures("xstest", x, sets[0])),
        *figure_rows("MT-bench", authors_figures("mtbench", m, sets[1])),
    ]
    decided = "set | metric | judge | answers | no label | accuracy | best baseline | human ceiling"
    decided += " | gap to an annotator, required | decision"
    ties = [
        [f"tied votes: {said}", *row[1:3], *row[-2:]]
        for ties, said in (("none", "no reference label"), ("lower", "first"), ("upper", "tie"))
        for row in decision_rows("", mtbench(sets[1], ties=ties), (CONSISTENT,))
    ]
    unsafe = [alternative_row(
        "XSTest: Compliance, unsafe prompts", x, "compliance", lambda a: prompt_kind(a) == "unsafe"
    )]  # fmt: skip
    tests = [
        alternative_row(f"{title}: {metric.title}", study, metric.id)
        for title, study in studies.items()
        for metric in study.rubric.metrics
    ]
    return "\n".join([
        table("The authors' figures", "set | source | figures | the same | differences", figures),
        table(
            "The expert and the crowd",
            "metric | a crowd label is the expert's | the crowd's reference label is | items tied",
            crowd_rows(c),
        ),
        table("Decisions", decided, [
            *decision_rows("XSTest", x), *decision_rows("MT-bench", m),
            *decision_rows("Medical queries", c, (CONSTANT, BLIND)),
        ]),
        table(
            "Judges against the blind rule",
            "set | metric | judge | answers | accuracy, judge minus blind rule",
            [row for title in ("XSTest", "MT-bench") for row in blind_rows(title, studies[title])],
        ),
        table(
            "Safe prompts that were refused, %",
            "according to | " + " | ".join(dict.fromkeys(a.system or "" for a in x.answers)),
            refusal_rows(x),
        ),
        table(
            "MT-bench: what a tied majority means",
            "reference labels | metric | judge | gap to an annotator, required | decision", ties,
        ),
        table(
            "The Alternative Annotator Test",
            "metric | commonest label | annotators tested | always the same passes from ε = "
            "| blind rule | judges | balanced: these two", [*tests, *unsafe],
        ),
        table(
            "What each set needs", "set | rubric | data and judges",
            [
                ["XSTest", *lines_of("xstest")], ["MT-bench", *lines_of("mtbench")],
                ["Medical queries", *lines_of("medical-safety-crowd")],
            ],
        ),
    ])  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what reading left out is said by judgebench run
    started = time.perf_counter()
    with TemporaryDirectory() as runs:
        print(tables(Path(sys.argv[1]), Path(runs)))
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr)
