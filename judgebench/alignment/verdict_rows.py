"""What every judge said of every answer, as a table to be opened in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judgebench.studies.study import Study
from judgebench.studies.verdicts import was_asked


def verdict_rows(study: Study) -> Iterator[Sequence[str]]:
    """The names of the columns, then a row for each answer and each judge that is no control: a
    label for each metric, how the verdict ended and, where a label is missing, why."""
    metrics, gaps = study.rubric.metrics, [" ".join(study.gaps)] if study.gaps else []
    about, ended = ("item_id", "question", "system", "group", "judge"), ("status", "reason")
    yield (*about, *(metric.id for metric in metrics), *ended, *["incomplete" for _ in gaps])
    judges = [judge for judge in study.judges if judge.kind != "control"]
    asked = {judge.name: was_asked(judge.verdicts, study.answers) for judge in judges}
    found = {judge.name: [study.judged(judge, metric) for metric in metrics] for judge in judges}
    for row, answer in enumerate(study.answers):
        item = (answer.item_id, answer.question, answer.system, answer.group)
        for judge in (judge for judge in judges if asked[judge.name][row]):
            places = [labels[row] for labels in found[judge.name]]
            said = [m.label_texts[i] for m, i in zip(metrics, places, strict=True)]
            ended = ("ok", "")
            if min(places) < 0:  # only then is the verdict itself read, which takes time
                verdict = judge.verdicts[answer.item_id]
                said = [verdict.labels.get(metric.id, "") for metric in metrics]
                ended = (verdict.status.value, verdict.reason)
            yield (*item, judge.name, *said, *ended, *gaps)
