"""The public functions of judgebench: everything that the command line does is one of them.

Inputs are DataFrames or paths; what comes back prints itself and has `to_frame()`.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard

from judgebench.errors import Problem, SetupError, raise_any, some
from judgebench.results.rows import Results
from judgebench.rubric import Rubric, load_rubric
from judgebench.stats.jackknife import LEVEL
from judgebench.studies.answers import indexed
from judgebench.studies.drawn import drawn_of, kept_columns
from judgebench.studies.study import JudgeKind, JudgeVerdicts, Study, study_of
from judgebench.studies.truth import TruthConfig

if TYPE_CHECKING:
    import pandas as pd

    from judgebench.alignment import Alignment
    from judgebench.annotation.draw import Kind as DrawKind
    from judgebench.annotation.init import Made
    from judgebench.annotation.lead import Collected
    from judgebench.certificate.record import Certificate
    from judgebench.certificate.watch import Watched
    from judgebench.checks import Outcome
    from judgebench.comparison.result import Comparison
    from judgebench.data.layout import Layout
    from judgebench.decisions.result import Decisions
    from judgebench.decisions.rule import DecisionRule
    from judgebench.judges.control import ControlJudge
    from judgebench.judges.judge import Judge
    from judgebench.judges.recorded import AsJudges
    from judgebench.models.contract import Backend
    from judgebench.progress import Progress
    from judgebench.rates.result import Rates
    from judgebench.records import Verdict
    from judgebench.results.part import Part
    from judgebench.results.shown import Shown
    from judgebench.runs.bench import Bench
    from judgebench.scorers.correlate import Correlations
    from judgebench.scorers.steady import Consistency
    from judgebench.scorers.table import Scores

Given: TypeAlias = "pd.DataFrame | str | Path"
Tables: TypeAlias = "Given | Sequence[Given] | Mapping[str, Given]"
"""A table, several, or several by the names of their annotators or judges."""
Rule: TypeAlias = "DecisionRule | Mapping[str, Any] | str | Path"
Truth = TruthConfig | Mapping[str, Any] | str
"""How human labels become a truth: a rule's name, some keys of a TruthConfig, or a whole one."""


def layout(
    labels: Tables,
    verdicts: Tables | None = None,
    answers: Given | None = None,
    *,
    rubric: Rubric | str | Path | None = None,
    columns: Mapping[str, Any] = {},
) -> Layout:
    """What every column of these tables is; it prints itself, and `init` writes it as YAML.

    A column's role is known by what `columns` says, by a known export, by a published list of names
    (`judgebench list columns`) or by the labels that columns share. `columns` maps a column to what
    it is (`{"kim": "label harm by Kim", "reply": "reply by gpt-4"}`), and may hold settings: the
    `order` of labels (`"no < yes"`), `annotators` (columns, one for each), `item`, `question`,
    `judge`, `blank`, `failed`, `spell`, `several`, `header`, `skip`, `fill_down`,
    `repeats`, `only_common`.

    Raises Unsettled where several readings are possible, with `questions` and the entries of
    `columns` that choose each reading; and SetupError with every problem of the tables.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> labels = pd.DataFrame(
    ...     {"id": [1, 1, 2], "annotator": ["Ann", "Ben", "Ann"], "tone": ["mild", "mild", "rude"]}
    ... )
    >>> layout = jb.layout(labels, columns={"order": "mild < rude"})
    >>> layout.sheets[0].columns["tone"].role
    'label'
    """
    from judgebench.data.reading import GivenTables, infer_layout, sources_of
    from judgebench.data.settings import Unsettled, settings_of

    settings = settings_of(columns)
    people, judged = sources_of(labels, "labels"), sources_of(verdicts, "verdicts")
    beside = sources_of(answers, "answers")
    tables = GivenTables(people, judged, beside)
    if verdicts is None and answers is None and not isinstance(labels, list | tuple | Mapping):
        tables = GivenTables(unsorted=people)
    known = load_rubric(str(rubric)) if isinstance(rubric, str | Path) else rubric
    try:
        return infer_layout(tables, settings, known)
    except Unsettled as unsettled:
        raise Unsettled(unsettled.questions, in_python=True) from None


def study(
    labels: Tables | Layout,
    verdicts: Tables | None = None,
    answers: Given | None = None,
    *,
    rubric: Rubric | str | Path | None = None,
    truth: Truth | None = None,
    level: float = LEVEL,
    as_judges: AsJudges = (),
    columns: Mapping[str, Any] = {},
    expected: Literal["items", "rows"] = "items",
) -> Study:
    """The study of human labels and judges' verdicts, with baselines fitted.

    `labels`, `verdicts` and `answers` are DataFrames or paths, or a `layout` or the path of a
    layout.yaml in place of all. Several tables of labels, by the names of annotators, and of
    verdicts, by those of judges: `{"gpt-4": frame, "claude": "claude.csv"}`. What each column is
    follows from `columns`, as in `layout`, and stands under every result.

    A verdict that is not a label of the metric counts as unreadable or refused where a `rubric` is
    given, and is asked about otherwise; a blank cell counts as failed. About an item without a row
    a judge was never asked, and nothing is decided, unless `expected="rows"` says that only a part
    of the items was meant for it. What a decision rests on is declared: `columns={"question": …,
    "order": …}` and `truth={"blind": "yes"}`, or `{"independent_items": True}`.

    A column `made_blind` of the labels (`yes` or `no`) says whether they were made without sight of
    any model's label, unless `truth` does. `as_judges` are annotators who stand among the judges,
    as in `open_run`.

    Raises SetupError with every problem of all tables, and warns of what was left out or repaired.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> labels = pd.DataFrame({
    ...     "item_id": ["a", "a", "b", "b"],
    ...     "annotator": ["Ann", "Bob", "Ann", "Bob"],
    ...     "tone": ["Friendly", "Curt", "Rude", "Rude"],
    ... })
    >>> verdicts = pd.DataFrame({
    ...     "item_id": ["a", "b"], "judge": "my-judge", "tone": ["Friendly", "Rude"],
    ... })
    >>> rubric = jb.Rubric.from_labels({"tone": ["Friendly", "Curt", "Rude"]})
    >>> study = jb.study(labels, verdicts, rubric=rubric)
    >>> [judge.name for judge in study.judges if judge.kind == "judge"]
    ['my-judge']
    """
    from judgebench.data.findings import REPEATED
    from judgebench.data.layout import layout_notes
    from judgebench.data.load import read_study
    from judgebench.data.rows import WHOLE_REPLY
    from judgebench.judges.config import RecordedConfig
    from judgebench.judges.control import control_judges, usual_controls
    from judgebench.judges.recorded import (
        annotators_as_judges,
        lacking_labels,
        recorded_judges,
        truth_of_others,
    )
    from judgebench.results.part import UNDERSTOOD
    from judgebench.runs.judging import tasks_of
    from judgebench.studies.verdicts import suspicions

    known = _layout_of(labels, verdicts, answers, rubric, columns, truth, as_judges)
    data = read_study(known)
    whole, used = known.rubric, data.metrics
    measured = whole.only([m.id for m in whole.metrics if m.id in used or WHOLE_REPLY in used])
    rows = indexed(data.answers)
    people = annotators_as_judges(as_judges, measured, rows, data.labels)
    names = [judge.name for judge in people]
    config = _truth({**known.truth, **_changes(truth)}, TruthConfig()).with_blindness(data.blind)
    config = truth_of_others(config, names, data.labels)
    made = study_of(measured, rows, data.labels, config, level)
    items = dict.fromkeys(made.answers.item_ids())
    recorded = RecordedConfig(verdicts=known.name, expected=expected, ties=config.ties)
    real = list(recorded_judges(data.judges, recorded, known.name, measured, items))
    usual = [
        name for name in usual_controls(measured) if data.has_texts or name != "longest-answer"
    ]
    controls = control_judges(usual, measured, made.answers, data.labels, 0, None)
    _differ([*names, *(judge.name for judge in real), *(judge.name for judge in controls)])
    problems = [*data.warnings, *(unknown for judge in real for unknown in judge.unknown(items))]
    problems += map(Problem, lacking_labels(people))
    makers = suspicions(made.makers, [judge.name for judge in real])
    in_data = (f"In the data: {problem}." for problem in problems if problem.kind != REPEATED)
    judges = [
        *people,
        *(_judged(judge, "judge", judge.judge(tasks_of(made.answers))) for judge in real),
        *(_judged(judge, "control", judge.verdicts()) for judge in controls),
    ]
    by_name = sorted(judges, key=lambda judge: judge.name)  # as in a run folder
    columns_notes = (f"{UNDERSTOOD}{line}." for line in layout_notes(known))
    collected = (f"{UNDERSTOOD}{sentence}" for sentence in data.collected)
    made = replace(
        made, name=whole.name, judges=tuple(by_name),
        notes=(*columns_notes, *collected, *in_data, *made.notes),
        unconfirmed_question=known.unconfirmed_question,
    )  # fmt: skip
    if noticed := [*map(str, (*problems, *makers)), *made.gaps]:
        warnings.warn("\n".join(noticed), stacklevel=2)
    return made


_make_study = study  # where a parameter is called study


def _layout_of(
    labels: Tables | Layout, verdicts: Tables | None, answers: Given | None,
    rubric: Rubric | str | Path | None, columns: Mapping[str, Any], truth: Truth | None,
    as_judges: AsJudges,
) -> Layout:  # fmt: skip
    """The layout that is given, or that of the tables. Raises SetupError."""
    from judgebench.data.layout import Layout, is_layout, load_layout

    if isinstance(labels, Study) or _is_run(labels):
        message = "holds a study already: give it to jb.decide, jb.align or jb.report as it is"
        what = "a study" if isinstance(labels, Study) else f"the run folder {labels}"
        raise SetupError(Problem(message, field="labels", found=what))
    if isinstance(labels, Layout):
        return labels
    if isinstance(labels, str | Path) and is_layout(Path(labels)):
        known = load_rubric(str(rubric)) if isinstance(rubric, str | Path) else rubric
        return load_layout(Path(labels), known)
    said = _changes(truth)
    kept = kept_columns(said.get("drawn") or ())
    settings = {
        **kept, **columns, "person": said.get("annotators") or (), "as_judge": [*as_judges],
    }  # fmt: skip
    return layout(labels, verdicts, answers, rubric=rubric, columns=settings)


def _changes(truth: Truth | None) -> dict[str, Any]:
    """The keys of a TruthConfig that are given."""
    if truth is None:
        return {}
    if isinstance(truth, TruthConfig):
        return truth.model_dump(exclude_defaults=True)
    return {"rule": truth} if isinstance(truth, str) else dict(truth)


def _judged(
    judge: Judge | ControlJudge, kind: JudgeKind, verdicts: Iterable[Verdict]
) -> JudgeVerdicts:
    """The verdicts of a judge that needs no model."""
    found = {verdict.item_id: verdict for verdict in verdicts}
    return JudgeVerdicts(judge.name, kind, judge.signature, found, about=judge.describe())


def _differ(names: Sequence[str]) -> None:
    """Raises SetupError where two judges have one name."""
    message = "two judges have this name, or a baseline has it"
    twice = (name for name, count in Counter(names).items() if count > 1)
    raise_any([Problem(message, field="verdicts", found=name) for name in twice])


def open_run(
    folder: str | Path,
    *,
    truth: Truth | None = None,
    as_judges: AsJudges = (),
) -> Study:
    """The study that a run folder holds. `truth` replaces some of the run's own settings.

    The annotators `as_judges`, names or patterns such as `expert*`, stand among the judges and have
    no part in the truth. A blank cell of theirs counts as failed, and so does a missing row of an
    item that others labelled; with `{"expert*": "rows"}` a missing row does not. Raises SetupError
    where the folder holds no run, and for places in a list (`crowd#3`), which are no people. Raises
    DamagedRun, with every file, where files are not those that the run wrote. What an unfinished
    run lacks, and what was repaired, is said in a warning and under every table.

    >>> import judgebench as jb
    >>> jb.open_run("runs/small", truth="majority").config.rule
    'majority'
    >>> jb.open_run("runs/small", as_judges=["annotator-1"]).judges[0].name
    'annotator-1'
    """
    from judgebench.judges.recorded import lacking_labels
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.load import settings_of
    from judgebench.runs.open import open_run as open_folder
    from judgebench.runs.wing import with_wings

    found = RunFolder.existing(Path(folder))
    try:
        settings = settings_of(found.manifest())
        config = _truth({} if truth is None else truth, settings.truth)
        opened = with_wings(open_folder(found, config, settings.report.level, as_judges), found)
    except SetupError as error:
        raise SetupError([found.repairable(p) for p in error.problems]) from None
    known = found.manifest()["judges"]
    people = [judge for judge in opened.judges if judge.name not in known]
    if said := (*opened.gaps, *lacking_labels(people)):
        warnings.warn("\n".join(said), stacklevel=2)
    return opened


def _truth(given: Truth, usual: TruthConfig) -> TruthConfig:
    from judgebench.yaml_file import validate

    if isinstance(given, TruthConfig):
        return given
    changes = {"rule": given} if isinstance(given, str) else dict(given)
    return validate({**usual.model_dump(), **changes}, TruthConfig, file="truth")


def align(
    study: Study | Tables | Layout,
    verdicts: Tables | None = None,
    *,
    answers: Given | None = None,
    truth: Truth | None = None,
    columns: Mapping[str, Any] = {},
) -> Alignment:
    """Measure how every judge agrees with the humans, and the humans with each other: of a study
    or a run folder, or of tables, as in `decide`, which need no verdicts.

    >>> import judgebench as jb
    >>> frame = jb.align(jb.open_run("runs/small")).to_frame()
    >>> sorted(frame.analysis.unique())[:3]
    ['agreement', 'annotator_labels', 'ceiling']
    """
    from judgebench.alignment import align as compare

    return compare(_study_of(study, verdicts, answers, truth, columns))


def _study_of(
    given: Study | Tables | Layout, verdicts: Tables | None, answers: Given | None,
    truth: Truth | None, columns: Mapping[str, Any],
) -> Study:  # fmt: skip
    """The study that is given or in a run folder, or that of the tables. Raises SetupError for both
    at once."""
    if _is_run(given):
        given, truth = open_run(given, truth=truth), None
    if not isinstance(given, Study):
        return study(given, verdicts, answers, truth=truth, columns=columns)
    settled = {"verdicts": verdicts, "answers": answers, "truth": truth, "columns": columns or None}
    message = "a study has these already: give them to jb.study (and a rule as `rule=`)"
    raise_any([Problem(message, field=key) for key, value in settled.items() if value is not None])
    return given


def _is_run(given: object) -> TypeGuard[str | Path]:
    """True for a run folder, as against a table, or the text of one."""
    if not isinstance(given, str | Path) or "\n" in str(given):
        return False
    return (Path(given) / "run.json").is_file()


def _opened_study(given: Study | str | Path) -> Study:
    """The study that is given, or that in a run folder. Raises SetupError for anything else."""
    if isinstance(given, Study):
        return given
    named = isinstance(given, str | Path)
    if named and not Path(given).is_file():
        return open_run(given)
    message = "give a study or a run folder; jb.study makes a study of tables"
    found = str(given) if named else type(given).__name__
    raise SetupError(Problem(message, field="study", found=found))


def decide(
    study: Study | Tables | Layout,
    verdicts: Tables | None = None,
    rule: Rule | None = None,
    *,
    answers: Given | None = None,
    truth: Truth | None = None,
    columns: Mapping[str, Any] = {},
    looks: Sequence[float] = (),
) -> Decisions:
    """Decide whether each judge can replace the annotators, assist them, or neither, metric by
    metric: of a study or a run folder, or of tables of labels, verdicts and answers, which are
    understood as in `study`.

    `rule` is a YAML file, a shipped rule or a mapping with the keys of one, such as
    `{"replace": {"humans": {"margin": 0.1}}}`, and `truth` of tables as in `study`. `columns` names
    what cannot be guessed, such as the labels from the least to the most severe:
    `columns={"order": "Safe < Unsure < Unsafe"}`. Where the study has a stress test, it counts.

    Of a study that is not complete, `looks` are the shares of its planned answers that were
    labelled at each look so far, this one last: `looks=[0.33, 0.67]` is the second look. Early
    looks need clearer evidence. Raises SetupError where the shares do not rise, up to 1.

    >>> import judgebench as jb
    >>> frame = jb.decide(jb.open_run("runs/small")).to_frame()
    >>> frame[frame.analysis == "decision"].outcome.to_list()
    ["CAN'T TELL", "CAN'T TELL", "CAN'T TELL"]
    """
    _need("decide")
    from judgebench.decisions.rule import rule_for
    from judgebench.decisions.run import decide as decide_study
    from judgebench.runs.wing import analyses

    try:
        shares = [float(share) for share in looks]
    except (TypeError, ValueError):
        message = "give a list, the share of the planned answers at each analysis: [0.33, 0.67]"
        raise SetupError(Problem(message, field="looks", found=repr(looks))) from None
    study = _study_of(study, verdicts, answers, truth, columns)
    if not study.real_judges:
        message = "no judge to decide on: give a table of verdicts as well, or name its column "
        message += "with --column 'COLUMN=verdict' (in Python columns={'COLUMN': 'verdict'})"
        raise SetupError(Problem(message, found=f"annotators {some(study.makers)}"))
    chosen = rule_for(rule, study.rubric)
    found = analyses(study, "stress")
    return decide_study(study, chosen, found["stress"].results if found else None, shares)


def estimate(
    study: Study | Tables | Layout,
    verdicts: Tables | None = None,
    answers: Given | None = None,
    *,
    by: str = "",
    drawn: str | Sequence[str] = (),
    width: float | None = None,
    anytime: bool = False,
    scores: Mapping[str, Sequence[str]] = {},
    truth: Truth | None = None,
    columns: Mapping[str, Any] = {},
) -> Rates:
    """Estimate how often each label occurs, of all answers and by each value of the column `by`
    (without one, by system): from human labels of a part of the answers and verdicts on all.

    The rates stand side by side by human labels alone, with the verdicts (PPI++), by Rogan-Gladen,
    and by verdicts alone, which are no valid estimate. `drawn` says how the labelled answers were
    drawn: `random`, `weight=COLUMN`, `probability=COLUMN`, `strata=COLUMN`, or several of them.
    Without it they are taken for a random sample where they look like the others, and where they
    do not, there are no intervals. With `width` it says how many more labels make intervals so
    wide; `anytime` limits hold at every look while labels arrive in batches. With truth `each` the
    rates are those of a random annotator.

    Of one table, `scores` maps columns of numbers that people gave, blank where nobody did, to the
    columns of numbers that predict them: `{"omissions": ["chrf"]}`; their means are estimated.

    Tables are understood as in `study`, and a run folder is opened. Raises SetupError where no
    answer has a human label and for columns that no answer has.

    >>> import judgebench as jb
    >>> rates = jb.estimate("few-labels.csv", "all-verdicts.csv", columns={"order": "no < yes"})
    >>> print(rates.results.find("ppi", "rate", of="yes", group="tuned"))
    0.010 [0.001, 0.061]
    """
    _need("estimate")
    from judgebench.rates.population import of_study, of_table
    from judgebench.rates.run import Plan, naming_by
    from judgebench.rates.run import estimate as estimate_population

    how = [drawn] if isinstance(drawn, str) else [*drawn]
    plan = Plan(by, drawn_of(how), width, anytime)
    if scores and not isinstance(study, Study):
        named = columns.get("question", "")
        question = named if isinstance(named, str) else next(iter(named), "")
        return estimate_population(*of_table(study, scores, question), plan)
    if not (isinstance(study, Study) or _is_run(study)):
        columns = {**kept_columns(how, by), **columns}
    with naming_by(by):
        study = _study_of(study, verdicts, answers, truth, columns)
    return estimate_population(*of_study(study), plan)


def compare(
    a: Study | str | Path,
    b: Study | str | Path,
    *,
    judges: tuple[str, str] = ("", ""),
    rule: Rule | None = None,
) -> Comparison:
    """Compare A with B on the same answers: B minus A with intervals, the decisions that changed,
    the verdicts that flipped.

    Both are studies or run folders, also the same one twice. `judges` names one of each; without,
    judges of the same name are compared, or the only judge of each. Both are scored against the
    human labels of B. Raises SetupError where there is nothing to
    compare.

    >>> import judgebench as jb
    >>> found = jb.compare("runs/small", "runs/small")
    >>> found.difference("accuracy", "my-judge", "empathy").value
    0.0
    >>> len(found.flips.to_frame())
    0
    """
    _need("compare")
    from judgebench.comparison.compare import compare as compare_studies

    first = _opened_study(a)
    same = isinstance(b, str | Path) and a == b
    second = first if same else _opened_study(b)
    if first.name == second.name and first is not second:  # the folders tell them apart
        first, second = (
            study if isinstance(given, Study) else replace(study, run=_in_folder(study, given))
            for study, given in ((first, a), (second, b))
        )
    if rule is not None:
        first, second = (replace(x, beside={**x.beside, "decide": rule}) for x in (first, second))
    return compare_studies(first, second, judges)


def _in_folder(study: Study, folder: str | Path) -> str:
    return ", ".join(filter(None, (study.run, str(folder))))


def consistency(
    table: Given,
    *,
    group: str = "",
    system: str = "",
    scores: Sequence[str] = (),
    ratio: Sequence[str] = (),
    standard_error: float | None = None,
    level: float = LEVEL,
) -> Consistency:
    """Measure how much of the scores in a table is noise: rows of the same `group` (the question)
    and `system` are runs, in their order. Where these are not given, columns are known by their
    names.

    `scores` are the columns to look at, by default all that hold numbers; those of `ratio` have a
    true zero, so that a coefficient of variation means something. With a `standard_error` it is
    also said how many runs lead to it. Raises SetupError with every problem of the table.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> table = pd.DataFrame({"question": ["a", "a", "b", "b"], "chrf": [0.1, 0.3, 0.7, 0.9]})
    >>> round(jb.consistency(table, group="question").results.find("icc").value, 3)
    0.895
    """
    _need("scorers")
    from judgebench.data.tables import read_table
    from judgebench.scorers.steady import Consistency, table_rows

    read = read_table(table, filter(None, [group, system, *scores, *ratio]))
    rows = table_rows(read, (group, system), scores, ratio, standard_error, level)
    return Consistency(read.stem, Results(tuple(rows)), len(read))


def correlate(
    table: Given,
    against: Sequence[str] = (),
    *,
    group: str = "",
    system: str = "",
    flip: Sequence[str] = (),
    scores: Sequence[str] = ("*",),
    more: Mapping[str, Any] = {},
    without: Sequence[str] = (),
) -> Correlations:
    """Find the columns of scores that go together, and those that say the same.

    The table has a row for each `system`, or for each item where `group` names the column of its
    question; blank cells are gaps. The columns of `scores` are held `against` those named, those of
    `flip` with the sign changed (`*` fits anything in both). Rows of the systems `without`, such as
    the reference text, are left out. `more` are new columns by name: the
    weights of the columns that they average, or a table of pairs of systems (`first`, `second`,
    `winner`), which gives Bradley-Terry strengths. An average is not held against
    its parts.
    Raises SetupError with every problem of the tables.

    >>> import judgebench as jb
    >>> import pandas as pd
    >>> table = pd.DataFrame({"model": list("abcd"), "closed": [1, 2, 3, 4], "open": [1, 3, 2, 4]})
    >>> found = jb.correlate(table, ["closed"]).results
    >>> round(found.find("pearson", judge="open").value, 2)
    0.8
    """
    _need("scorers")
    from judgebench.scorers.correlate import Roles, correlate_table

    return correlate_table(table, Roles(against, group, system, flip, scores, without), more)


def stress(study: Study | str | Path) -> Shown:
    """The findings of a run's stress test: attacks that were noticed, verdicts that held.

    Raises SetupError where the run had none. `jb.load_bench(…, stress=True)` makes one.

    >>> import judgebench as jb
    >>> found = jb.stress(jb.open_run("runs/stressed"))
    """
    return _found(study, "stress", "stress test")


def rank(study: Study | str | Path) -> Shown:
    """Rank the arguments of a run by their worth to those who decide by them.

    Raises SetupError where no arguments were ranked.

    >>> import judgebench as jb
    >>> found = jb.rank(jb.open_run("runs/ranked"))
    """
    return _found(study, "ranking", "ranking of arguments")


def prefer(study: Study | str | Path) -> Shown:
    """Measure how judges and humans compare several responses to one question: pairs and triples
    in the right order beside chance and the ceiling of the reply format, agreement with each vote,
    position bias, win rates and rankings of systems, scores by criteria.

    Raises SetupError where the study holds neither several responses nor criteria.

    >>> import judgebench as jb
    >>> found = jb.prefer(jb.open_run("runs/small"))
    """
    return _found(study, "preferences", "question with several responses")


def tune(
    bench: Study | str | Path,
    folder: str | Path | None = None,
    *,
    budget: float | None = None,
    show_progress: bool = False,
) -> Shown:
    """Measure judges that learn on answers that they never saw: the gain over what was there
    before, what one would have claimed without folds, held-out systems, learning curves.

    Runs the bench.yaml as `judgebench tune` does, into the run folder (default: runs/NAME); of a
    study of such a run, shows it again. `budget` and `show_progress` are as in `run`.

    Raises SetupError where no judge learns.

    >>> import judgebench as jb
    >>> frame = jb.tune("bench.yaml", "runs/tuned").to_frame()
    >>> sorted(frame.analysis.unique())
    ['gain', 'otherwise', 'score', 'test']
    """
    _need("tuning")
    if not (isinstance(bench, Study) or _is_run(bench)):
        from judgebench.runs.load import load_bench as load

        extend = import_module("judgebench.tuning.judges").TuningExtension()
        loaded = load(Path(bench), extend=extend)
        bench = run(loaded, folder, budget=budget, show_progress=show_progress)
    return _found(bench, "tuning", "judge that learns")


def export_judge(
    bench: str | Path,
    name: str,
    to: str | Path,
    *,
    folder: str | Path | None = None,
    merged: bool = False,
    budget: float | None = None,
    data_folder: str | Path | None = None,
    show_progress: bool = False,
) -> Path:
    """Write what a judge learns from all labels into the folder `to`, with rubric, manifest and
    model card, to be used on other data: `{name: NAME, tuned: TO}` among the judges.

    `folder` is the run folder (default: runs/NAME of the benchmark), which must hold the judge's
    out-of-fold verdicts. `merged` writes a whole model in place of an adapter. The others are as in
    `run` and `load_bench`. Raises SetupError where that cannot be, or where `to` is there already.

    >>> import judgebench as jb
    >>> found = jb.tune("bench.yaml", "runs/tuned")
    >>> jb.export_judge("bench.yaml", "my-judge", "exported", folder="runs/tuned").name
    'exported'
    """
    _need("tuning")
    from judgebench.progress import SILENT, ProgressDisplay
    from judgebench.results.screen import Screen
    from judgebench.runs.bench import default_run_folder
    from judgebench.runs.folder import RunFolder
    from judgebench.runs.forecast import budget_of
    from judgebench.runs.judging import Stop, Work

    export = import_module("judgebench.tuning.export").export_judge
    display = ProgressDisplay(Screen()) if show_progress else nullcontext(SILENT)
    with closing(load_bench(bench, data_folder=data_folder)) as loaded, display as progress:
        at = RunFolder(Path(folder) if folder else default_run_folder(loaded.config))
        work = Work(at, progress, budget_of(loaded, at, budget), Stop())
        export(loaded, name, Path(to), work, merged=merged)
    return Path(to)


def annotate(file: str | Path, to: str | Path, *, new_version: bool = False) -> Made:
    """Make the study in which people label the items of an annotate.yaml, or of a bench.yaml with
    the key `annotate`: blind screens, who labels what, and a link for everybody.

    With `new_version` the folder holds the study already, and goes on with the items as they are
    now: labels count as long as text and question stay the same. Raises SetupError with every
    problem; nothing is written then.

    >>> import judgebench as jb
    >>> made = jb.annotate("annotate.yaml", "studies/labels")
    >>> sorted(path.name for path in made.study.iterdir())
    ['key.json', 'served']
    """
    _need("annotate")
    from judgebench.annotation.init import init

    return init(file, to, new_version=new_version)


def collected(study: str | Path) -> Collected:
    """Summarise the labels of a study of `judgebench annotate` so far: progress, agreement, who
    differs from the rest. Raises SetupError where there is no study.

    >>> import judgebench as jb
    >>> jb.collected("studies/labels").figures["rounds"]["main"]
    {'of': 24, 'complete': 0}
    """
    _need("annotate")
    from judgebench.annotation.export import snapshot
    from judgebench.annotation.lead import Collected

    with snapshot(Path(study)) as store:
        return Collected(store)


def draw(
    study: Study | str | Path,
    kind: DrawKind,
    *,
    metric: str = "",
    judge: str = "",
    items: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Draw items of a study or a run folder that people are to label once more, at random.

    `agreed`: 59 on which all annotators of the bar and the judge agree; an expert who labels them
    shows errors that these share. `disagreements`: all on which two annotators or more, or one of
    them and a judge, differ, with these labels in the column `labels_in_question`; labels of the
    annotator `adjudicated` on them are gold. `again`: 100 that annotators of the bar labelled, for
    one of them to label again. `metric` and `judge` may be left out where there is one; all judges
    count for disagreements. Raises SetupError where there are fewer than `items`.

    >>> import judgebench as jb
    >>> list(jb.draw(study, "agreed", metric="tone", items=20))  # doctest: +SKIP
    ['item_id', 'group', 'system', 'question', 'reference', 'text']
    """
    _need("annotate")
    import pandas as pd

    from judgebench.annotation.draw import draw_items

    return pd.DataFrame(draw_items(_opened_study(study), kind, metric, judge, items, seed))


def count_drawn(
    study: Study | str | Path, kind: DrawKind, labels: Given, *, metric: str = "", judge: str = ""
) -> str:
    """Say what the labels of one annotator on drawn items tell. Of `agreed` items: how many the
    expert contradicts, with an exact interval. Of items labelled `again`: whether the judge gives
    the labels of record more often than the new ones, as it does where these were made in sight of
    the judge (exact, one-sided, at 1 %). Raises SetupError for labels of no such item.

    >>> import judgebench as jb
    >>> jb.count_drawn(study, "agreed", "expert/labels.csv", metric="tone")  # doctest: +SKIP
    'Tone: the expert contradicts 1 of 20 items on which annotators and judge agree: ...'
    """
    _need("annotate")
    from judgebench.annotation.draw import count_drawn as count

    return count(_opened_study(study), kind, labels, metric, judge)


def _need(wing: str) -> None:
    """Raises SetupError where that part of judgebench was taken out."""
    from judgebench.features import WINGS

    if wing not in WINGS:
        raise SetupError(f"this installation of judgebench lacks judgebench/{wing}")


def _found(given: Study | str | Path, wing: str, what: str) -> Shown:
    from judgebench.runs.wing import analyses

    _need(wing)
    study = _opened_study(given)
    if (found := analyses(study, wing).get(wing)) is None:
        raise SetupError(Problem(f"{study.name} holds no {what}"))
    return found


def watch(
    certificate: Certificate | str | Path,
    study: Study | Tables | Layout | None = None,
    verdicts: Tables | None = None,
    *,
    answers: Given | None = None,
    columns: Mapping[str, Any] = {},
) -> Watched:
    """Compare a certificate with all new labels and verdicts, in the order of time: of a study or a
    run folder, or of tables, which are understood as in `decide`. Without any it says whether the
    file is unchanged and has not expired.

    Answers of the certificate that were judged again show whether the judge changed; labels of new
    answers show whether it still agrees with people. In tables a verdict is due on the items with a
    row alone. Raises SetupError where the certificate was changed after it was issued.

    >>> import judgebench as jb
    >>> watched = jb.watch("judge.json", "new-labels.csv", "new-verdicts.csv")
    >>> watched.state, watched.reasons
    ('valid', ())
    """
    _need("certificate")
    from judgebench.certificate.record import Certificate, read
    from judgebench.certificate.watch import watch as compare_with

    if not isinstance(certificate, Certificate):
        certificate = read(Path(certificate))
    if study is None:
        return compare_with(certificate)
    if not (isinstance(study, Study) or _is_run(study)):
        known = certificate.rubric
        study = _make_study(
            study, verdicts, answers, rubric=known, columns=columns, expected="rows"
        )
        verdicts = answers = None
        columns = {}
    return compare_with(certificate, _study_of(study, verdicts, answers, None, columns))


def analyse(
    study: Study | str | Path,
    rule: Rule | None = None,
    *,
    every: bool = False,
    show_progress: bool = False,
) -> dict[str, Shown]:
    """Every analysis that the study, or that in a run folder, has data for, by name.

    Pairs and triples of responses that nobody compared are measured only with `every`. Progress is
    shown on standard error.

    >>> import judgebench as jb
    >>> list(jb.analyse(jb.open_run("runs/small")))[:2]
    ['align', 'decide']
    """
    from judgebench.alignment.alignment import ALIGNED
    from judgebench.alignment.alignment import align as compare
    from judgebench.progress import SILENT, ProgressDisplay
    from judgebench.results.screen import Screen
    from judgebench.runs.wing import analyses

    study = _opened_study(study)
    display = ProgressDisplay(Screen(sys.stderr)) if show_progress else nullcontext(SILENT)
    with display as progress:
        aligned = compare(study, progress)
        asked = {**({"decide": rule} if rule else {}), "preferences": every}
        beside = {**study.beside, ALIGNED: aligned.results, **asked}
        found = analyses(replace(study, beside=beside), progress=progress)
    return {"align": _decided(aligned, found.get("decide")), **found}


def _decided(aligned: Alignment, decisions: Shown | None) -> Alignment:
    """The alignment with the outcome of each judge and metric."""
    decided = decisions.part.standings if decisions else ()
    return replace(aligned, outcomes={(one.judge, one.metric): one.outcome for one in decided})


def report(
    study: Study
    | Decisions
    | Alignment
    | Comparison
    | Correlations
    | Consistency
    | Rates
    | Watched
    | str
    | Path,
    folder: str | Path,
    rule: Rule | None = None,
    *,
    every: bool = False,
    figures: bool = False,
    checklist: str | Path | None = None,
) -> Mapping[str, Path]:
    """Write the report of a study or a run folder, of decisions with the alignment that they rest
    on, or of an alignment, a comparison, correlations, consistency or rates alone: report.html,
    results.csv, tables.md and LaTeX tables, and of a study or decisions decisions.csv and
    verdicts.csv.

    Of a study with `every` analysis, see `analyse`. With `figures` they are drawn in the page and
    as files, PNG and PDF in `plots/`. With a `checklist`, a shipped name such as `grras` or a file,
    the report of a study shows its items, filled, and `folder` has a copy of it for your answers.

    Returns the path of each file. Where `folder` holds the report of more answers, it stays as it
    is: the files go into a folder beside it, and a warning says so. Raises DiskFailed where one
    cannot be written.

    >>> import judgebench as jb
    >>> jb.report(jb.open_run("runs/small"), "paper")["html"].name
    'report.html'
    """
    from judgebench.checklist import with_checklist
    from judgebench.decisions.result import Decisions
    from judgebench.results.shown import Shown
    from judgebench.results.write import write_in_place

    study = study if isinstance(study, Shown) else _opened_study(study)
    if checklist and not isinstance(study, Study):
        raise SetupError(Problem("is filled from a study or a run folder", field="checklist"))
    if isinstance(study, Study):
        findings = analyse(study, rule, every=every)
        if checklist:
            findings = with_checklist(findings, checklist, study, Path(folder))
        shown, asked = parts(findings), study.n_judged
    elif isinstance(study, Decisions) and study.study:
        aligned = _decided(align(study.study), study)
        shown, asked = parts({"decide": study, "align": aligned}), study.n_answers
    else:
        shown, asked = study.parts, study.n_answers
    written, told = write_in_place(
        shown, Path(folder), name=study.name, answers=asked, figures=figures
    )
    if told:
        warnings.warn(told, stacklevel=2)
    return written


def parts(found: Mapping[str, Shown]) -> list[Part]:
    """The parts of a report, in order."""
    last = {"align": 1, "checklist": 2}
    return [found[name].part for name in sorted(found, key=lambda name: last.get(name, 0))]


def load_bench(
    path: str | Path,
    *,
    limit: int | None = None,
    data_folder: str | Path | None = None,
    stress: bool = False,
    local_only: bool = False,
) -> Bench:
    """The benchmark of a bench.yaml or of a shipped example, checked whole. Calls no model.

    `limit` keeps the first answers only, `data_folder` is where data files are looked for instead
    of where the file says. With `stress` its answers are also altered, for a stress test. With
    `local_only` a benchmark is refused whose judges would contact another machine, by name, before
    any engine is opened.

    Raises SetupError with every problem of the file and of all files that it names.

    >>> import judgebench as jb
    >>> bench = jb.load_bench("bench.yaml", limit=10)
    >>> len(bench.dataset.answers)
    10
    >>> bench.close()
    """
    from judgebench.runs.load import check_local
    from judgebench.runs.load import load_bench as load

    if local_only:
        check_local(Path(path))
    if stress:
        _need("stress")
    module = "judgebench.stress_tests.attacking"
    extend = import_module(module).StressExtension() if stress else None
    folder = Path(data_folder) if data_folder else None
    return load(Path(path), limit=limit, data_folder=folder, extend=extend)


def run(
    bench: Bench | str | Path,
    folder: str | Path | None = None,
    *,
    judges: Mapping[str, Judge | Backend] = {},
    budget: float | None = None,
    batch: bool = False,
    show_progress: bool = False,
) -> Study:
    """Judge what is not judged yet, and open the run folder (default: runs/NAME).

    `judges` are more judges by name: objects that meet the contract `jb.Judge`, or `jb.Backend`s,
    which are asked as the language models of a bench.yaml are. `budget` is what the run folder may
    cost in all, in US dollars. With `batch` remote judges use their providers' batch endpoints:
    cheaper, later, and collected by whatever run of this folder comes next. A bench.yaml with the
    key `proxy` is run as a ranking of arguments.
    Safe to interrupt; run it again to resume.

    Raises SetupError where an object does not meet its contract, and RunError where judging failed;
    what was judged by then is kept.

    >>> import judgebench as jb
    >>> class Always:
    ...     name, signature = "always", "always the least severe label, 1"
    ...     def describe(self): return {"judge": "rule"}
    ...     def judge(self, tasks):
    ...         for task in tasks:
    ...             labels = {m.id: m.label_texts[0] for m in bench.rubric.metrics}
    ...             yield jb.Verdict(task.answer.item_id, task.content_hash, self.name,
    ...                              self.signature, jb.Status.OK, labels)
    ...     def close(self): pass
    >>> bench = jb.load_bench("bench.yaml")
    >>> [judge.name for judge in jb.run(bench, "runs/two", judges={"always": Always()}).judges][0]
    'always'
    """
    from judgebench.judges.llm import judges_from
    from judgebench.progress import SILENT, ProgressDisplay
    from judgebench.results.screen import Screen
    from judgebench.runs import run_bench
    from judgebench.runs.bench import Bench
    from judgebench.runs.run_bench import batched, place_of

    to = Path(folder) if folder else None
    shown = ProgressDisplay(Screen()) if show_progress else nullcontext(SILENT)
    with shown as progress:
        if not isinstance(bench, Bench) and (run_section := _section_run(Path(bench))):
            if judges or batch:
                message = "can only be given where answers are judged"
                raise SetupError(Problem(message, field="judges" if judges else "batch"))
            return open_run(run_section(to, progress, budget))
        loaded = bench if isinstance(bench, Bench) else load_bench(bench)
        found, notice = place_of(loaded, to)
        if notice:
            warnings.warn(notice, stacklevel=2)
        try:
            others = judges_from(judges, loaded.rubric, loaded.names)
            asked = batched(loaded, found, budget) if batch else loaded
            run_bench.run(replace(asked, others=others), found, budget=budget, progress=progress)
        finally:
            loaded.close()
    return open_run(found.path)


def _section_run(bench: Path) -> Callable[[Path | None, Progress, float | None], Path] | None:
    """The function that runs a bench.yaml that is no benchmark of judges, such as a ranking."""
    from judgebench.runs.load import bench_file
    from judgebench.runs.wing import sections
    from judgebench.yaml_file import load_yaml

    file = bench_file(bench)
    value = load_yaml(file)
    fitting = (one.run for one in sections() if isinstance(value, dict) and value.get(one.key))
    first = next(filter(None, fitting), None)
    return first and partial(first, file)


def score(
    answers: Given,
    scorers: Sequence[str | Mapping[str, Any]],
    *,
    columns: Mapping[str, str] = {},
    folder: str | Path | None = None,
) -> Scores:
    """Score the answers of a table, without labels: by ROUGE, chrF and whatever else
    `judgebench list scorers` names. `to_frame()` has a row for each answer.

    A scorer is a name, or settings as in `scorers` of a bench.yaml. `columns` says which column is
    the `text`, `reference`, `question`, `system` or `group`, where its name does not. Scores are
    kept in `folder`, so that the same call resumes. Raises SetupError with every problem.

    >>> import judgebench as jb
    >>> found = jb.score("answers.csv", ["length"], columns={"reference": "question"})
    >>> found.to_frame().columns.to_list()[-1]
    'length'
    """
    _need("scorers")
    from judgebench.progress import SILENT

    score_table = import_module("judgebench.scorers.table").score_table
    kept = Path(folder) if folder else None
    found: Scores = score_table(answers, scorers, columns, kept, SILENT)
    return found


def check(files: Sequence[str | Path], rubric: str | Path | None = None) -> Outcome:
    """Every problem in files of any kind, with file and row. Tables are checked against `rubric`,
    or else as their columns are understood. Calls no model.

    >>> import judgebench as jb
    >>> print(jb.check(["bench.yaml"]))
    bench.yaml: a benchmark of 24 answers with 188 human labels, 1 judge and 6 baselines
    24 answers and 188 human labels. Reference labels: the median of annotator-1, ...
    Bar: annotator-1, annotator-2 and annotator-3.
    Overlap: 24 of 24 items with a label have two or more.
      scientific_consensus, annotator-1: Aligned with consensus 14 (67 %), ...
    warning: labels.csv:34: scientific_consensus: blank cell, counted as no label (1 time, row 34)
    No errors.
    """
    from judgebench.checks import check_all

    named = None if rubric is None else str(rubric)
    return check_all([Path(file) for file in files], named)
