"""Decide published studies again: their printed figures, decisions beside every baseline, the
published test of judges and of rules that never read an answer, and what one choice turns around.

    python examples/audit/decide_again.py FOLDER --downloads DOWNLOADS [--only NAME] [--to PAGES]

FOLDER is a study, or contains one folder per study: study.yaml, bench.yaml with its rubric and
layout, and, where they are needed, rule.yaml (the decision rule), published.csv and published.py.
The prepare.py beside these folders makes tables of the published files, which DOWNLOADS contains.
Python files are run: read them before you run what somebody else wrote. PAGES gets every number
(audit.csv) and the tables (tables.md); `--update docs/audit.md` writes the tables into that page,
by their titles.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import yaml

import judgebench as jb
from judgebench.records import is_slot
from judgebench.results.documents import escape_markdown
from judgebench.stats.paired_tests import DuelTerms, alternative_annotator_test, average_advantage
from judgebench.text import listed

OUTCOMES = ("REPLACE", "ASSIST", "DO NOT USE", "CAN'T TELL")
TESTED = ("passes", "guarded", "winning_rate", "advantage")
ESTIMATE = ("value", "low", "high", "n", "n_missing", "method", "reason")
NO_KEYS = ("source", "what", "printed", "scale")  # of published.csv; other columns select a row
TIES = {"none": "left out", "lower": "the first label", "upper": "the last label"}
MAX_NAMED = 6  # judges in a cell
Row = dict[str, Any]


@dataclass(frozen=True)
class StudyCard:
    """The keys of study.yaml."""

    title: str
    source: str  # the publication
    files: Sequence[Mapping[str, Any]]  # repository, paths and licence
    what: str
    claim: str
    data: str = ""  # the folder below DOWNLOADS; by default the name of the study
    ships_data: bool = False  # the files are beside study.yaml
    passes: Sequence[Mapping[str, str]] = ()  # judge and metric of each published pass
    traps: Sequence[str] = ()  # sentences on what misleads


@dataclass(frozen=True)
class Published:
    """A published study: its folder, its study.yaml, and the folder of its published files."""

    path: Path
    card: StudyCard
    data: Path

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.resolve().name

    def tables(self, work: Path) -> Path:
        """The folder of its tables: below `work`, if its files have to be made into tables."""
        prepare = self.path.resolve().with_name("prepare.py")
        if self.card.ships_data or not prepare.exists():
            return self.data
        tables = work / "tables"
        tables.mkdir()
        runpy.run_path(str(prepare))["prepare"](self.name, self.data, tables)
        return tables

    def figures(self, study: jb.Study) -> Iterator[tuple[str, str, str, float]]:
        """The figures that its published.py computes, if there is one."""
        computed = self.path / "published.py"
        if computed.exists():
            yield from runpy.run_path(str(computed))["figures"](study, self.data)

    def decide(self, study: jb.Study) -> Any:
        """Return the decisions by the rule of the study."""
        rule = self.path / "rule.yaml"
        return jb.decide(study, rule=rule if rule.exists() else None)


def read_studies(folder: Path, downloads: Path, only: Sequence[str] = ()) -> list[Published]:
    """Return the studies in a folder, by name. Raises SetupError with every problem."""
    here = folder / "study.yaml"
    files = [here] if here.exists() else sorted(folder.glob("*/study.yaml"))
    names = [file.resolve().parent.name for file in files]
    problems = [
        jb.Problem("no such study", str(folder), found=name, allowed=", ".join(names))
        for name in only
        if name not in names
    ]
    if not files:
        problems = [jb.Problem("no study.yaml in this folder or one below", str(folder))]
    studies = []
    for file, name in zip(files, names, strict=True):
        try:
            card = StudyCard(**yaml.safe_load(file.read_text("utf-8")))
        except (TypeError, yaml.YAMLError) as error:
            message = str(error).removeprefix("StudyCard.__init__() ")
            problems.append(jb.Problem(message, str(file)))
            continue
        data = file.parent if card.ships_data else downloads / (card.data or name)
        if not only or name in only:
            studies.append(Published(file.parent, card, data))
    if problems:
        raise jb.SetupError(problems)
    return studies


# ---- the numbers of a study ---------------------------------------------------------------------


def row_of(
    analysis: str, statistic: str, estimate: Any, judge: str = "", metric: str = "", **keys: str
) -> Row:
    """Return an estimate with its keys."""
    numbers = {name: getattr(estimate, name) for name in ESTIMATE}
    about = {"analysis": analysis, "judge": judge, "metric": metric, "statistic": statistic}
    return {**about, **keys, **numbers}


def decide_again(published: Published, work: Path) -> Iterator[Row]:
    """Yield every number of a study; `work` is an empty folder."""
    file, tables = published.path / "bench.yaml", published.tables(work)
    with closing(jb.load_bench(file, data_folder=tables, local_only=True)) as bench:
        study = jb.run(bench, work / "run")
    decisions = published.decide(study)
    titles = {metric.id: metric.title for metric in study.rubric.metrics}
    title = published.card.title
    for row in [
        *printed_figures(published, study, decisions),
        *decision_rows(decisions),
        *judge_tests(published.card, decisions),
        *baseline_tests(study, decisions),
        *choice_rows(published, study, decisions, work / "run"),
    ]:
        metric = titles.get(row["metric"], "")
        on_metric = f"{title}: {metric}" if len(titles) > 1 else title
        yield {"study": published.name, "study_title": title,
               "metric_title": metric, "title": on_metric, **row}  # fmt: skip


def printed_figures(published: Published, study: jb.Study, decisions: Any) -> Iterator[Row]:
    """Yield each figure as its authors printed it, beside the value that the files give."""
    file = published.path / "published.csv"
    table = pd.read_csv(file, dtype=str, keep_default_na=False) if file.exists() else pd.DataFrame()
    results = decisions.results
    for figure in table.to_dict("records") if "statistic" in table else ():
        keys = {key: text for key, text in figure.items() if text and key not in NO_KEYS}
        if "statistic" not in keys:  # published.py computes it
            continue
        analysis, statistic = keys.pop("analysis"), keys.pop("statistic")
        rows = results.select(analysis, statistic, **keys)
        if not rows:
            results += jb.align(study).results
            rows = results.select(analysis, statistic, **keys)
        if len(rows) != 1:
            message = f"these keys select {len(rows)} rows of the results, and must select one"
            raise jb.SetupError(jb.Problem(message, str(file), field=figure["what"]))
        value, scale = rows[0].estimate.value, float(figure.get("scale") or 1)
        scaled = None if value is None else scale * value
        yield _figure(figure["source"], figure["what"], figure["printed"], scaled)
    for figure in published.figures(study):
        yield _figure(*figure)


def _figure(source: str, what: str, printed: str, value: float | None) -> Row:
    """Return a printed figure; it is the same where the last printed digit is."""
    decimals = len(printed.partition(".")[2])
    is_same = value is not None and f"{value:.{decimals}f}" == printed.strip("%")
    estimate = jb.Estimate(value, reason="" if value is not None else "the files give none")
    keys = {"source": source, "what": what, "printed": printed}
    return row_of("figure", "value", estimate, same="yes" if is_same else "no", **keys)


def outcome_of(decisions: Any) -> dict[tuple[str, str], str]:
    """Return the outcome of each judge on each metric."""
    return {(row.judge, row.metric): row["outcome"] for row in decisions.results.select("decision")}


def decision_rows(decisions: Any) -> Iterator[Row]:
    """Yield the accuracy of each judge, of annotators and of the best baseline."""
    outcomes = outcome_of(decisions)
    for place, standing in zip(outcomes, decisions.part.standings, strict=True):
        keys = {"outcome": outcomes[place], "who": standing.baseline_name}
        for statistic in ("accuracy", "humans", "baseline"):
            yield row_of("decision", statistic, getattr(standing, statistic), *place, **keys)


def judge_tests(card: StudyCard, decisions: Any) -> Iterator[Row]:
    """Yield the published test of each judge; `guarded`: it also beats every baseline."""
    claims = {(claim["judge"], claim["metric"]) for claim in card.passes}
    outcomes = outcome_of(decisions)
    for row in decisions.results.select("alternative_test"):
        if row.statistic in TESTED:
            place = row.judge, row.metric
            claimed = "yes" if place in claims else "no"
            keys = {"kind": "judge", "claimed": claimed, "outcome": outcomes.get(place, "")}
            yield row_of("test", row.statistic, row.estimate, *place, **keys)


def baseline_tests(study: jb.Study, decisions: Any) -> Iterator[Row]:
    """Yield the published test with each baseline in the place of a judge."""
    for metric in study.rubric.metrics:
        epsilon = decisions.results.find("epsilon", "alternative_test", metric=metric.id).value
        humans, k = study.humans[metric.id], len(metric.labels)
        people = [maker for maker in humans.makers if not is_slot(maker)]
        if epsilon is None or len(people) < 2:
            continue
        is_ordinal = metric.kind == "ordinal"
        terms = DuelTerms(epsilon, severities=metric.severities if is_ordinal else None)
        ratings = humans.ratings.of(people).values
        for judge in study.controls:
            labels = study.judged(judge, metric)[humans.ratings.rows]
            test = alternative_annotator_test(ratings, labels, k, terms)
            advantage = average_advantage(ratings, labels, humans.clusters, k, terms, study.level)
            passes = None if test.passes is None else float(test.passes)
            for statistic, estimate in (
                ("passes", jb.Estimate(passes, reason=test.reason)),
                ("winning_rate", jb.Estimate(test.winning_rate, n=test.tested, reason=test.reason)),
                ("advantage", advantage),
            ):
                yield row_of("test", statistic, estimate, judge.name, metric.id, kind="baseline")


# ---- what one choice turns around ---------------------------------------------------------------


def choice_rows(published: Published, study: jb.Study, decisions: Any, run: Path) -> Iterator[Row]:
    """Yield the accuracy of each judge under each other choice, with both outcomes."""
    before = outcome_of(decisions)
    for choice, other in other_studies(study, run):
        for row in decision_rows(published.decide(other)):
            if row["statistic"] == "accuracy":
                first = before[row["judge"], row["metric"]]
                yield {**row, "analysis": "choice", "choice": choice, "before": first}


def other_studies(study: jb.Study, run: Path) -> Iterator[tuple[str, jb.Study]]:
    """Yield the same study with one choice changed, where the reference labels or their makers
    change: ties, the rule for reference labels, the annotators, the order of the labels."""
    is_ordinal = any(metric.kind == "ordinal" for metric in study.rubric.metrics)
    changes: dict[str, Row] = {f"ties: {text}": {"ties": ties} for ties, text in TIES.items()}
    for rule in (
        ("majority", "median", "dawid_skene") if is_ordinal else ("majority", "dawid_skene")
    ):
        changes[f"reference labels: {rule}"] = {"rule": rule}
    n_labels = Counter[str]()
    for humans in study.humans.values():
        counts = (humans.ratings.of(humans.makers).values >= 0).sum(axis=0).tolist()
        n_labels.update(dict(zip(humans.makers, counts, strict=True)))
    if len(n_labels) > 2:
        first_two = [name for name, _ in n_labels.most_common(2)]
        changes["two annotators, with the most labels"] = {"annotators": first_two}
    for choice, change in changes.items():
        with suppress(jb.SetupError):  # such as a model of annotators where places are nobody
            other = jb.open_run(run, truth=change)
            if other.config != study.config and _differs(study, other):
                yield choice, other
    if is_ordinal:
        yield "labels without an order", without_order(study)


def _differs(study: jb.Study, other: jb.Study) -> bool:
    """Return whether the reference labels, or the annotators who make them, differ."""
    pairs = [(humans, other.humans[metric]) for metric, humans in study.humans.items()]
    return any(a.makers != b.makers or (a.truth != b.truth).any() for a, b in pairs)


def without_order(study: jb.Study) -> jb.Study:
    """Return the same labels and reference labels, with metrics whose labels have no order."""
    metrics = tuple(
        metric.model_copy(update={"kind": "nominal"}) if metric.kind == "ordinal" else metric
        for metric in study.rubric.metrics
    )
    rubric = study.rubric.model_copy(update={"metrics": metrics})
    humans = {metric.id: replace(study.humans[metric.id], metric=metric) for metric in metrics}
    return replace(study, rubric=rubric, humans=humans)


# ---- the tables of docs/audit.md ----------------------------------------------------------------


class Rows(list[Row]):
    """Rows, and how to select some of them."""

    def select(self, analysis: str, **keys: Any) -> Rows:
        """Return the rows with all these keys."""
        keys["analysis"] = analysis
        return Rows(row for row in self if all(row.get(key) == keys[key] for key in keys))

    def beside(self, row: Row, statistic: str) -> Row | None:
        """Return another number of the same test."""
        same = {key: row[key] for key in ("analysis", "study", "judge", "metric")}
        return next(iter(self.select(**same, statistic=statistic)), None)

    def groups(self, *keys: str) -> dict[tuple[Any, ...], Rows]:
        """Return the rows by the values of some keys, in their order."""
        groups: dict[tuple[Any, ...], Rows] = {}
        for row in self:
            groups.setdefault(tuple(row[key] for key in keys), Rows()).append(row)
        return groups


def outcomes_table(rows: Rows) -> Iterator[Sequence[Any]]:
    """Yield the judges of each outcome, by study and metric."""
    decisions = rows.select("decision", statistic="accuracy")
    for titles, group in decisions.groups("study_title", "metric_title").items():
        judges = [[row["judge"] for row in group if row["outcome"] == name] for name in OUTCOMES]
        yield *titles, *(_named(names, MAX_NAMED, "{} judges") for names in judges)


def _named(judges: Sequence[str], most: int, otherwise: str = "{}") -> str:
    """Return the names of judges, or their number where they are many."""
    if len(judges) > most:
        return otherwise.format(len(judges))
    return listed(judges) if judges else ""


def claims_table(rows: Rows) -> Iterator[Sequence[Any]]:
    """Yield each published pass, and what is left of it."""
    tests = rows.select("test", statistic="advantage", kind="baseline")
    for row in rows.select("test", statistic="passes", claimed="yes"):
        baselines = [
            test for test in tests
            if (test["study"], test["metric"]) == (row["study"], row["metric"])
            and test["value"] is not None
        ]  # fmt: skip
        best = max(baselines, key=lambda test: test["value"], default=None)
        yield (
            row["title"], row["judge"], rows.beside(row, "advantage"),
            best and best["judge"], best, _yes(row), _yes(rows.beside(row, "guarded")),
            row["outcome"],
        )  # fmt: skip


def _yes(row: Row | None) -> str:
    return "yes" if row and row["value"] else "no"


def baselines_table(rows: Rows) -> Iterator[Sequence[Any]]:
    """Yield the baselines that pass, and how many judges have no more of an advantage."""
    for row in rows.select("test", statistic="passes", kind="baseline", value=1.0):
        advantage, rate = rows.beside(row, "advantage"), rows.beside(row, "winning_rate")
        same = {"study": row["study"], "metric": row["metric"], "kind": "judge"}
        judges = rows.select("test", statistic="advantage", **same)
        n_behind = sum((judge["value"] or 0) <= advantage["value"] for judge in judges)
        shares = f"{rate['value']:.2f}", advantage, f"{n_behind} of {len(judges)}"
        yield row["title"], row["judge"], *shares


def figures_table(rows: Rows) -> Iterator[Sequence[Any]]:
    """Yield how many printed figures come out, by study and source."""
    for titles, group in rows.select("figure").groups("study_title", "source").items():
        others = [
            f"{row['what']}: {row['printed']} printed, "
            + ("–" if row["value"] is None else f"{row['value']:.4g}") + " found"
            for row in group if row["same"] == "no"
        ]  # fmt: skip
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        named = "; ".join(others[:3]) or "none"
        yield *titles, len(group), len(group) - len(others), named + more


def choices_table(rows: Rows) -> Iterator[Sequence[Any]]:
    """Yield the decisions that another choice turns around, by study and choice."""
    for titles, group in rows.select("choice").groups("study_title", "choice").items():
        turned = Rows(row for row in group if row["before"] != row["outcome"])
        ways = [
            f"{before} → {outcome}: {_named([row['judge'] for row in same], 3)}"
            for (before, outcome), same in turned.groups("before", "outcome").items()
        ]
        yield *titles, len(group), len(turned), "; ".join(ways) or "none"


TABLES = {
    "Outcomes": (outcomes_table, "Study", "Metric", *OUTCOMES),
    "Published passes": (
        claims_table, "Study", "Judge", "Advantage", "Best baseline", "Its advantage",
        "Passes again", "Beats every baseline", "Outcome",
    ),
    "Baselines that pass the published test": (
        baselines_table, "Study", "Baseline", "Winning rate", "Advantage", "Judges with no more",
    ),
    "The authors' figures": (
        figures_table, "Study", "Source", "Figures", "The same", "Not the same",
    ),
    "What one choice turns around": (
        choices_table, "Study", "Choice", "Decisions", "Turned around", "Which",
    ),
}  # fmt: skip


def tables_of(rows: Rows) -> dict[str, str]:
    """Return each table as Markdown, by its title."""
    tables = {}
    for title, (make, *columns) in TABLES.items():
        lines = [columns, ["---", "---", *["---:"] * (len(columns) - 2)]]
        lines += [[_cell(content) for content in line] for line in make(rows)]
        tables[title] = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return tables


def _cell(content: Any) -> str:
    if not isinstance(content, dict):
        return "–" if content is None else escape_markdown(str(content))
    if content["value"] is None:
        return "–"
    interval = (
        f" [{content['low']:.3f}, {content['high']:.3f}]" if content["low"] is not None else ""
    )
    return f"{content['value']:.3f}{interval}"


def summary(rows: Rows) -> Iterator[str]:
    """Yield the counts over all studies."""
    figures, claims = rows.select("figure"), rows.select("test", statistic="passes", claimed="yes")
    decisions, choices = rows.select("decision", statistic="accuracy"), rows.select("choice")
    passes = [row for row in claims if row["value"]]
    n_guarded = sum(_yes(rows.beside(row, "guarded")) == "yes" for row in passes)
    blind = rows.select("test", statistic="passes", kind="baseline", value=1.0)
    n_same = sum(row["same"] == "yes" for row in figures)
    n_turned = sum(row["before"] != row["outcome"] for row in choices)
    yield f"studies: {len(rows.groups('study'))}"
    yield f"printed figures: {len(figures)}, the same: {n_same}"
    yield f"published passes: {len(claims)}{_counted(claims)}"
    yield f"published passes that pass again: {len(passes)}, and beat every baseline: {n_guarded}"
    yield f"pairs of a judge and a metric: {len(decisions)}{_counted(decisions)}"
    yield f"studies in which a baseline passes: {len(blind.groups('study'))}"
    yield f"decisions under another choice: {len(choices)}, turned around: {n_turned}"


def _counted(rows: Iterable[Row]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    return "".join(f", {name}: {counts[name]}" for name in OUTCOMES if counts[name])


def update(page: Path, tables: Mapping[str, str]) -> None:
    """Replace each table of a page that has the title of one of these."""

    def table(match: re.Match[str]) -> str:
        return f"### {match[1]}\n\n{tables.get(match[1], match[2])}"

    text = page.read_text("utf-8")
    page.write_text(re.sub(r"^### (.+)\n\n((?:\|.*\n)+)", table, text, flags=re.MULTILINE), "utf-8")


def main() -> int:
    """Decide every study whose files are there. Return 1 where one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--downloads", type=Path, help="where the published files are")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--to", type=Path, metavar="PAGES", help="write audit.csv and tables.md")
    parser.add_argument("--update", type=Path, metavar="PAGE", help="write the tables into a page")
    options = parser.parse_args()
    try:
        studies = read_studies(options.folder, options.downloads or options.folder, options.only)
    except jb.SetupError as error:
        parser.error(str(error))
    rows, n_failed = Rows(), 0
    for published in studies:
        if not published.data.exists():
            print(f"{published.path.name}: left out, no {published.data}", file=sys.stderr)
            continue
        try:
            with TemporaryDirectory() as work, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += decide_again(published, Path(work))
        except jb.SetupError as error:
            n_failed += 1
            print(f"{published.path.name}: {error}", file=sys.stderr)
    tables = tables_of(rows)
    text = "\n".join(f"### {title}\n\n{table}" for title, table in tables.items())
    print(text, *summary(rows), sep="\n")
    if options.to:
        options.to.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(rows).to_csv(options.to / "audit.csv", index=False)
        (options.to / "tables.md").write_text(text, "utf-8")
    if options.update:
        update(options.update, tables)
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
