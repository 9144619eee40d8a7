"""A study of tables: what their columns are, and the labels and verdicts that they hold."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from judgebench.errors import Problem, SetupError, raise_any
from judgebench.records import ADJUDICATED, Answer
from judgebench.rubric import Rubric, load_rubric, one_or_more
from judgebench.runs.open import Truth, is_run, open_run, truth_config
from judgebench.stats.intervals import LEVEL
from judgebench.studies.answers import indexed
from judgebench.studies.reference_labels import TruthConfig, kept_columns
from judgebench.studies.study import (
    ANCHORS,
    RECORDED,
    JudgeKind,
    JudgeVerdicts,
    Study,
    study_of,
)

if TYPE_CHECKING:
    import pandas as pd

    from judgebench.data.layout import Layout
    from judgebench.data.reading import GivenTables
    from judgebench.data.settings import TableSettings
    from judgebench.judges.control import ControlJudge
    from judgebench.judges.judge import Judge
    from judgebench.judges.recorded import AsJudges
    from judgebench.records import Verdict

Given: TypeAlias = "pd.DataFrame | str | Path"
Tables: TypeAlias = "Given | Sequence[Given] | Mapping[str, Given]"
"""A table, several, or several by the names of their annotators or judges."""


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
    return _layout_of(labels, verdicts, answers, rubric, columns, None, ())


def layout_of(
    tables: GivenTables, settings: TableSettings, rubric: Rubric | None,
    truth: Mapping[str, Any] = {}, as_judges: AsJudges = (),
) -> Layout:  # fmt: skip
    """Return the layout of tables, with the annotators and columns that keys of a TruthConfig name.

    Raises Unsettled and SetupError.
    """
    from judgebench.data.reading import infer_layout
    from judgebench.data.settings import TableSettings, settings_of

    people = TableSettings(
        person=tuple(one_or_more(truth.get("annotators"))), as_judge=(*as_judges,)
    )
    kept = settings_of(kept_columns(truth.get("drawn") or ()))
    return infer_layout(tables, kept.with_more(settings).with_more(people), rubric)


def _given_tables(labels: Tables, verdicts: Tables | None, answers: Given | None) -> GivenTables:
    """One table alone may hold anything."""
    from judgebench.data.reading import GivenTables, sources_of

    people = sources_of(labels, "labels")
    if verdicts is None and answers is None and not isinstance(labels, list | tuple | Mapping):
        return GivenTables(unsorted=people)
    return GivenTables(people, sources_of(verdicts, "verdicts"), sources_of(answers, "answers"))


def _rubric(rubric: Rubric | str | Path | None) -> Rubric | None:
    return load_rubric(str(rubric)) if isinstance(rubric, str | Path) else rubric


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
    import pandas as pd

    from judgebench.data.findings import REPEATED
    from judgebench.data.layout import layout_notes
    from judgebench.data.load import read_study
    from judgebench.data.rows import WHOLE_REPLY
    from judgebench.data.tables import known_of
    from judgebench.judges.config import RecordedConfig
    from judgebench.judges.control import control_judges, usual_controls
    from judgebench.judges.recorded import (
        annotators_as_judges,
        lacking_labels,
        recorded_judges,
        truth_of_others,
    )
    from judgebench.results.blocks import UNDERSTOOD
    from judgebench.runs.judging import tasks_of
    from judgebench.studies.verdicts import suspicions

    as_judges = [as_judges] if isinstance(as_judges, str) else as_judges
    known = _layout_of(labels, verdicts, answers, rubric, columns, truth, as_judges)
    data = read_study(known)
    whole, used = known.rubric, data.metrics
    measured = whole.only([m.id for m in whole.metrics if m.id in used or WHOLE_REPLY in used])
    with_labels = (sheet.source.path for sheet in known.sheets if sheet.has_labels)
    anchors = [row for path in with_labels for row in known_of(path, "anchors")]
    of_anchors = {x["item_id"]: Answer(x["item_id"], "", group=x.get("group", "")) for x in anchors}
    for answer in data.answers:
        of_anchors.pop(answer.item_id, None)
    rows = indexed([*data.answers, *of_anchors.values()])
    people = annotators_as_judges(as_judges, measured, rows, data.labels)
    names = [judge.name for judge in people]
    config = truth_config({**known.truth, **_changes(truth)}, TruthConfig())
    config = config.with_blindness(data.blind)
    config = truth_of_others(config, names, data.labels)
    made = study_of(measured, rows, data.labels, config, level)
    items = dict.fromkeys(made.answers.item_ids())
    recorded = RecordedConfig(verdicts=known.name, expected=expected, ties=config.ties)
    real = list(recorded_judges(data.judges, recorded, known.name, measured, items))
    usual = [
        name for name in usual_controls(measured) if data.has_texts or name != "longest-answer"
    ]
    controls = control_judges(usual, measured, made.answers, data.labels, 0, None)
    problems = [*data.warnings, *(unknown for judge in real for unknown in judge.unknown(items))]
    problems += map(Problem, lacking_labels(people))
    makers = suspicions(made.makers, [judge.name for judge in real])
    in_data = (f"In the data: {problem}." for problem in problems if problem.kind != REPEATED)
    judges = [
        *people,
        *(_judged(judge, "judge", judge.judge(tasks_of(made.answers))) for judge in real),
        *(_judged(judge, "control", judge.verdicts()) for judge in controls),
    ]
    _differ([judge.name for judge in judges])
    by_name = sorted(judges, key=lambda judge: judge.name)  # as in a run folder
    columns_notes = (f"{UNDERSTOOD}{line}." for line in layout_notes(known))
    collected = (f"{UNDERSTOOD}{sentence}" for sentence in data.collected)
    made = replace(
        made, name=whole.name, judges=tuple(by_name),
        notes=(*columns_notes, *collected, *in_data, *made.notes),
        unconfirmed_question=known.unconfirmed_question, sources=data.sources,
        beside={RECORDED: real},
    )  # fmt: skip
    made = with_anchors(made, pd.DataFrame(anchors)) if anchors else made
    if noticed := [*map(str, (*problems, *makers)), *made.gaps]:
        warnings.warn("\n".join(noticed), stacklevel=2)
    return made


def _layout_of(
    labels: Tables | Layout, verdicts: Tables | None, answers: Given | None,
    rubric: Rubric | str | Path | None, columns: Mapping[str, Any], truth: Truth | None,
    as_judges: AsJudges,
) -> Layout:  # fmt: skip
    """The layout that is given, or that of the tables. Raises SetupError."""
    from judgebench.data.layout import Layout, is_layout, load_layout
    from judgebench.data.settings import Unsettled, settings_of

    if isinstance(labels, Study) or is_run(labels):
        message = "holds a study already: give it to jb.decide, jb.align or jb.report as it is"
        what = "a study" if isinstance(labels, Study) else f"the run folder {labels}"
        raise SetupError(Problem(message, field="labels", found=what))
    if isinstance(labels, Layout):
        return labels
    if isinstance(labels, str | Path) and is_layout(Path(labels)):
        return load_layout(Path(labels), _rubric(rubric))
    settings, tables = settings_of(columns), _given_tables(labels, verdicts, answers)
    try:
        return layout_of(tables, settings, _rubric(rubric), _changes(truth), as_judges)
    except Unsettled as unsettled:
        raise Unsettled(unsettled.questions, in_python=True) from None


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


def study_from(
    given: Study | Tables | Layout,
    verdicts: Tables | None,
    truth: Truth | None,
    columns: Mapping[str, Any],
) -> Study:
    """The study that is given or in a run folder, or that of the tables. Raises SetupError for both
    at once."""
    if not isinstance(given, Study):
        if not is_run(given):
            return study(given, verdicts, truth=truth, columns=columns)
        given, truth = open_run(given, truth=truth), None
    settled = {"verdicts": verdicts, "truth": truth, "columns": columns or None}
    message = "a study has these already: give them to jb.study (and a rule as `rule=`)"
    problems = [Problem(message, field=key) for key, value in settled.items() if value is not None]
    if problems:
        raise SetupError(problems)
    return given


def with_anchors(study: Study, labels: Tables) -> Study:
    """The study without the answers whose right label is known, which stand beside it.

    `labels` are the annotators' on these answers and the right ones, of `adjudicated`. Raises
    SetupError for every problem of the table, and where it has no right label.
    """
    from judgebench.data.load import read_study
    from judgebench.data.reading import GivenTables, infer_layout, sources_of
    from judgebench.runs.judging import tasks_of

    tables = GivenTables(labels=sources_of(labels, "anchors"))
    data = read_study(infer_layout(tables, rubric=study.rubric))
    if not any(label.adjudicated for label in data.labels):
        message = f"has no known label: the annotator of these is `{ADJUDICATED}`"
        raise SetupError(Problem(message, ", ".join(data.sources), field="anchors"))
    known = study_of(study.rubric, data.answers, data.labels, study.config)
    is_other = ~np.isin([*study.answers.item_ids()], [*known.answers.item_ids()])
    judges = {judge.name: judge for judge in study.judges}
    for judge in study.beside.get(RECORDED, ()):  # whatever the study's own answers are
        judges[judge.name] = _judged(judge, "judge", judge.judge(tasks_of(known.answers)))
    anchors = replace(known, judges=tuple(judges.values()))
    others = study.only(np.flatnonzero(is_other))
    return replace(others, beside={**others.beside, ANCHORS: anchors})
