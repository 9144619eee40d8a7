"""Write the tables of a published study: prepare.py STUDY DATA TO.

DATA holds its files as they were published. labels.csv and verdicts.csv have a row per label, in
the columns that layout.yaml names: that of the study, or the one beside this script. Then
`judgebench run examples/audit/STUDY/bench.yaml --data-folder TO`.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pandas as pd

from judgebench.records import content_hash

HERE = Path(__file__).parent
COLUMNS = ["item_id", "group", "system", "asked", "annotator", "metric", "label"]
Tables = Mapping[str, pd.DataFrame]


def both(labels: pd.DataFrame, verdicts: pd.DataFrame, metric: str | None = None) -> Tables:
    """The two tables, with the columns that every labels.csv has, and the only metric of both."""
    if metric:
        labels, verdicts = labels.assign(metric=metric), verdicts.assign(metric=metric)
    columns = dict.fromkeys([*COLUMNS, *labels.columns])
    return {"labels": labels.reindex(columns=[*columns]), "verdicts": verdicts}


def long(table: pd.DataFrame, columns: Mapping[str, str], name: str) -> pd.DataFrame:
    """A row for each of these columns of labels, which say whose they are, row by row."""
    about = table.drop(columns=[*columns])
    parts = [about.assign(**{name: who, "label": table[c]}) for c, who in columns.items()]
    return pd.concat(parts).sort_index(kind="stable")


def on_each(table: pd.DataFrame, metrics: str) -> pd.DataFrame:
    """The same label on each of these metrics, whose rubric reads it in its own way."""
    return table.merge(pd.DataFrame({"metric": metrics.split()}), how="cross")


# ---- Calderon et al.: a grid of labels by annotator and item, whose id says what it is about -----

REVIEW = r"(?P<group>.+?).{6}__(?P<asked>.+)"  # six digits number the edits of a review
ITEM = "(?P<group>.+?)__(?P<system>.+?)__(?P<asked>.+)"
IDS = {
    "10k-prompts": "(?P<group>.+)",
    "cebab-aspects": REVIEW,
    "cebab-stars": REVIEW,
    "framing": "(?P<group>(?P<system>.+?)--.+?)__(?P<asked>.+)",  # a newspaper's article
    "lesion": "(?P<group>.+?)__(?P<asked>.+)",
    "lgbteen": ITEM,
    "mtbench": "(?P<group>.+?)__(?P<system>.+?__.+?)__(?P<asked>.+)",  # two systems
    "summeval": ITEM,
    "wax": "(?P<group>.+?)__.+",
}


def grid(file: Path, name: str) -> pd.DataFrame:
    """The rows of a grid; `name` is the column of who gave the label."""
    rows = [
        (item, who, label)
        for who, labels in json.loads(file.read_text("utf-8")).items()
        for item, label in labels.items()
    ]
    return pd.DataFrame(rows, columns=["item_id", name, "label"])


def alternative_annotators(pattern: str, data: Path) -> Tables:
    """A set of the Alternative Annotator Test."""
    labels = grid(data / "human_annotations.json", "annotator")
    labels = labels.join(labels.item_id.str.extract(f"^{pattern}$"))
    return both(labels, grid(data / "llm_annotations.json", "judge"), "label")


def summeval(data: Path) -> Tables:
    """The same ratings, each criterion a metric of the summary."""
    labels, verdicts = alternative_annotators(ITEM, data).values()
    for table in (labels, verdicts):
        table[["item_id", "metric"]] = table.item_id.str.rsplit("__", n=1, expand=True)
        table["item_id"] = table.item_id.str.replace("__", "-")
    return both(labels.drop(columns="asked"), verdicts)


# ---- the other studies ---------------------------------------------------------------------------


CRITERIA = [f"{name}_" for name in ("coherence", "consistency", "fluency", "relevance")]
SCORES = ["rouge-2", "rouge-l", "bertscore_f1", "moverscore", "bartscore_s_h", "questeval",
          "factcc_cls", "dae"]  # fmt: skip
MARKS = ["Consistent", "Benign", "Questionable", "Unwanted"]  # as in scripts/binarize.py
DETECTORS = ["gpt_4o", "gpt-4-turbo", "gpt-3.5-turbo", "trueteacher", "true_nli"]
DETECTOR_SCORES = ["hhemv1", "hhem-2.1", "hhem-2.1-english"]
ALL_READ = 10  # who marked so many of the 50 summaries of a file read them all


def dialsummeval(data: Path) -> Tables:
    """A summary with its ratings in one file and its metrics in a file per system."""
    table = pd.read_json(
        data / "annotation_campus/human_judgment.jsonl", lines=True, dtype={"id": str}
    )
    for i in range(3):
        given = pd.DataFrame(table.annotations.str[i].tolist(), table.index)
        table = table.join(given.add_suffix(f"_{i + 1}"))
    scores = []
    for folder in sorted((data / "reproduce/analysis/models_eval_new").glob("[A-N]")):
        lines = (folder / "summs.txt").read_text("utf-8").rstrip("\n").split("\n")
        about = pd.DataFrame({"model_id": folder.name, "text": lines})
        scores.append(about.join(pd.read_csv(folder / "metrics.csv")))
    # The two lists of summaries are in different orders: a summary is known by its text.
    found = pd.concat(scores)
    table["key"], found["key"] = table.summary.str.strip(), found.pop("text").str.strip()
    table = table.merge(found, on=["model_id", "key"], validate="one_to_one")
    table.insert(0, "item_id", table.id + "-" + table.model_id)
    ratings = [column for column in table if column[:-1] in CRITERIA]
    return {"summaries": table[["item_id", "id", "model_id", "summary", *ratings, *SCORES]]}


def faithbench(data: Path) -> Tables:
    """The worst mark of each annotator in a summary. Who marked nothing in a summary has no entry
    there: whether they read it follows from what they marked in the other summaries of the file."""
    labels, verdicts = [], []
    for file in sorted((data / "data_for_release").glob("batch_*.json")):
        samples = pd.DataFrame(json.loads(file.read_text("utf-8"))["samples"])
        samples.index = pd.Index(file.stem + "-" + samples.sample_id.astype(str), name="item_id")
        about = pd.DataFrame(samples.metadata.tolist(), samples.index)
        marks = (
            samples.annotations.explode()
            .dropna()
            .apply(pd.Series)
            .explode("label")
            .dropna(subset="label")
        )
        marks["place"] = marks.label.str.partition(".")[0].map(MARKS.index)
        worst = marks.groupby(["item_id", "annotator_name"]).place.max().unstack()
        worst = worst.reindex(samples.index)
        read = worst.columns[worst.notna().sum() >= ALL_READ]
        worst[read] = worst[read].fillna(0)
        given = worst.stack().dropna().astype(int).map(MARKS.__getitem__).rename("label")
        labels.append(given.reset_index(1).join(samples.source).join(about.summarizer))
        said = about[DETECTORS].join((about[DETECTOR_SCORES] >= 0.5).astype(int))
        verdicts.append(said.astype("Int64").rename_axis(columns="judge").stack().rename("label"))
    names = {"annotator_name": "annotator", "source": "group", "summarizer": "system"}
    tables = [pd.concat(parts).reset_index() for parts in (labels, verdicts)]
    return both(
        *(on_each(table.rename(columns=names), "questionable unwanted any") for table in tables)
    )


def llmbar(data: Path) -> Tables:
    """A pair is known by its texts; each model gave a verdict for either order of the outputs."""

    def pairs(file: Path) -> pd.DataFrame:
        table = pd.read_json(file, dtype=False)
        texts = table[["input", "output_1", "output_2"]]
        return table.assign(item_id=[content_hash(row) for row in texts.values.tolist()])

    labels, verdicts = [], []
    for file in sorted(data.glob("**/dataset.json")):
        pair = pairs(file).rename(columns={"input": "group"})[["item_id", "group", "label"]]
        labels.append(pair.assign(subset=file.parent.name, annotator="authors"))
        for result in sorted(file.parent.glob("evaluators/*/Vanilla/result.json")):
            model, judged = result.parts[-3], pairs(result)
            for order, judge in (("False", model), ("True", f"{model}_swapped")):
                label = judged.results.str[0].str[f"swap = {order}"].str["winner"]
                verdicts.append(judged[["item_id"]].assign(judge=judge, label=label))
    return both(pd.concat(labels), pd.concat(verdicts), "better")


def llmjudge(data: Path) -> Tables:
    """Lines such as "q49 0 p3659 3", in a file for each judge."""

    def grades(file: Path) -> pd.DataFrame:
        names = ["group", "iteration", "passage", "label"]
        table = pd.read_csv(file, sep=r"\s+", names=names, dtype=str)
        return table.assign(item_id=table.group + "-" + table.passage)[
            ["item_id", "group", "label"]
        ]

    labels = grades(data / "LLMJudge/data/llmjudge_test_qrel_idx.txt").assign(annotator="assessor")
    files = sorted((data / "LLMJudge-benchmark/submissions/scores").glob("*.txt"))
    verdicts = pd.concat([grades(file).assign(judge=file.stem) for file in files])
    return both(labels, verdicts.drop(columns="group"), "relevance")


def medical_safety_crowd(data: Path) -> Tables:
    """The expert in the judge's place, and two metrics of each label."""
    crowd = runpy.run_path(str(HERE.with_name("medical-safety-crowd") / "prepare.py"))["crowd"]
    metrics = {
        "query_risk": True,
        "critical": True,
        "response_type": False,
        "medical_response": False,
    }
    table = crowd(data)
    table["is_query"] = table.system.isna()
    table = table.merge(pd.DataFrame(metrics.items(), columns=["metric", "is_query"]), how="left")
    is_expert = table.annotator == "expert"
    verdicts = table[is_expert].rename(columns={"annotator": "judge"})
    return both(
        table[~is_expert].drop(columns="is_query"),
        verdicts[["item_id", "judge", "metric", "label"]],
    )


def mtbench(data: Path) -> Tables:
    """Votes, with the two models in alphabetical order. Where the order of the answers changed
    GPT-4's mind, gpt-4 says tie, as in the paper, and gpt-4-consistent nothing."""

    def votes(file: Path) -> pd.DataFrame:
        table = pd.read_json(file, lines=True)
        models = table[["model_a", "model_b"]]
        first, second = models.min(axis=1), models.max(axis=1)
        swapped = table.model_a > table.model_b
        label = ((table.winner == "model_a") ^ swapped).map({True: "first", False: "second"})
        return table.assign(
            item_id=table.question_id.astype(str) + "/" + first + "/" + second,
            group=table.question_id,
            system=first + " and " + second,
            metric="turn_" + table.turn.astype(str),
            label=label.mask(table.winner.str.startswith("tie"), "tie"),
        )

    human = votes(data / "human.jsonl.gz").rename(columns={"judge": "annotator"})
    gpt4 = votes(data / "gpt4_pair.jsonl.gz").assign(judge="gpt-4")
    consistent = gpt4.label.mask(gpt4.winner == "tie (inconsistent)", "inconsistent")
    said = pd.concat([gpt4, gpt4.assign(judge="gpt-4-consistent", label=consistent)])
    return both(
        human[human.annotator.str.startswith("expert")][[c for c in COLUMNS if c != "asked"]],
        said[["item_id", "judge", "metric", "label"]],
    )


def pandalm(data: Path) -> Tables:
    """Pairs of responses of two models, with three annotators; a file for each judge."""
    table = pd.read_json(data / "testset-v1.json", dtype=False)
    about = pd.DataFrame(
        {"item_id": table.idx, "group": table.instruction + "\n" + table.input,
         "system": table.cmp_key, "motivation_app": table.motivation_app}
    )  # fmt: skip
    people = {f"annotator{n}": f"annotator-{n}" for n in (1, 2, 3)}
    verdicts = []
    for judge, column in (("gpt-3.5-turbo", "gpt_result"), ("pandalm-7b", "pandalm_result")):
        file = pd.read_json(data / f"{judge}-testset-v1.json", dtype=False)
        verdicts.append(pd.DataFrame({"item_id": file.idx, "judge": judge, "label": file[column]}))
    labels = long(about.join(table[[*people]]), people, "annotator")
    return both(labels, pd.concat(verdicts), "better")


def triviaqa(data: Path) -> Tables:
    """Every judge is a column. Five rows are there twice, so that rows are numbered."""
    file = data / "TriviaQA_Judges_w_HumanJudgement_V1.csv"
    table = pd.read_csv(file, dtype=str, keep_default_na=False)
    table["item_id"] = table.index + 2
    names = {"question": "group", "model": "system", "HumanJudgement": "label"}
    labels = table[["item_id", *names]].rename(columns=names).assign(annotator="human")
    judges = "GPT-4 Llama3-70B Llama3-8B Llama-70B Llama-13B Llama-7B Mistral-7B Gemma-2B JudgeLM "
    judges += "Contains EM"
    verdicts = long(table[["item_id", *judges.split()]], {j: j for j in judges.split()}, "judge")
    return both(labels, verdicts, "correct")


def xstest(data: Path) -> Tables:
    """Two annotators and two judges. "final_label", which settles what the annotators differ in, is
    not read: it repeats what they said."""
    table = pd.read_csv(data / "xstest.csv.gz", dtype=str, keep_default_na=False)
    table["item_id"] = table.id + "-" + table.system
    about = table[["item_id", "system", "type"]].assign(group=table.id)
    people = {"annotation_1": "annotator-1", "annotation_2": "annotator-2"}
    judges = {"gpt4_label": "gpt-4", "strmatch_label": "string-match"}
    metrics = "compliance refused partly_refused"
    return both(
        on_each(long(about.join(table[[*people]]), people, "annotator"), metrics),
        on_each(long(table[["item_id", *judges]], judges, "judge"), metrics),
    )


STUDIES: Mapping[str, Callable[[Path], Tables]] = {
    **{f"alttest-{name}": partial(alternative_annotators, ids) for name, ids in IDS.items()},
    "dialsummeval": dialsummeval,
    "faithbench": faithbench,
    "llmbar": llmbar,
    "llmjudge": llmjudge,
    "medical-safety-crowd": medical_safety_crowd,
    "mtbench": mtbench,
    "pandalm": pandalm,
    "summeval": summeval,
    "triviaqa": triviaqa,
    "xstest": xstest,
}


def prepare(study: str, data: Path, to: Path) -> None:
    """Write the tables of a study into a folder that is there."""
    for name, table in STUDIES[study](data).items():
        table.to_csv(to / f"{name}.csv", index=False)


if __name__ == "__main__":
    prepare(sys.argv[1], *map(Path, sys.argv[2:]))
