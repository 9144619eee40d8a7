"""Whatever a file holds, reading it gives what it is for or an error of ours."""

import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from fuzz_budget import SCALARS, SET, TEXT, VALUES, bytes_like, fuzzed, nested_template, read, texts
from hypothesis import example, given
from hypothesis import strategies as st

import judgebench as jb
from judgebench.data.load import load_data
from judgebench.errors import JudgebenchError
from judgebench.files import load_with_lines, read_lines
from judgebench.judges.config import judge_entry
from judgebench.models.scripted import Scripted
from judgebench.prompt import load_prompt
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.setup_files import check

RUBRIC = load_rubric("support-tone")
RESPONSES = Rubric.model_validate(
    {
        "name": "x",
        "version": "1",
        "instructions": "x",
        "metrics": [
            {"id": "politeness", "title": "p", "question": "?", "kind": "preference"},
            {
                "id": "channel", "title": "c", "question": "?", "of": "criterion",
                "kind": "nominal", "labels": ["Phone", "Shop"],
            },
        ],
    }
)  # fmt: skip
PROMPTS = texts("prompts", ".jinja")
ANSWERS = "item_id,question,text,system\n1,Why?,Because.,a\n2,How?,So.,b\n"
LABELS = "item_id,annotator,politeness,channel\n1,ann,Polite,Phone\n2,ann,Impolite,\n"
LONG_LABELS = "item_id,annotator,metric,label\n1,ann,politeness,Polite\n2,bob,channel,Shop\n"
JSONL = (
    '{"item_id": "1", "text": "Because."}\n'
    '{"item_id": "2", "text": "So.", "politeness": "Polite"}\n'
)
LAYOUT = """rubric: support-tone
tables:
- file: answers.csv
  columns: {item_id: item, question: question, text: text, system: kept}
- file: labels.csv
  header: [1]
  skip: [9]
  fill_down: [annotator]
  only: {annotator: [ann, bob]}
  columns: {item_id: item, annotator: annotator, politeness: label politeness,
            channel: labels channel}
spell: {politeness: {nice: Polite, "-": null}, channel: {"": Shop}}
repeats: last
only_common: true
several: ";"
ids: signs
truth: {blind: "yes"}
"""
TALKS = """tables:
- file: answers.csv
  turns: whole
  columns: {item_id: item, text: messages, question: criteria, system: system}
- file: labels.csv
  who: ann
  columns: {item_id: item, annotator: criterion, politeness: label channel, channel: adjudicated}
- file: x.csv
  columns: {item_id: item, question: first, text: second, system: label politeness by Ann}
"""
JUDGE = """name: m
backend: scripted:replies.jsonl
prompt: structured
mode: one_pass
decoding: {temperature: 0.5, top_p: 0.9, max_tokens: 50, seed: 1}
parse_retries: 1
settings: {}
"""
JURY = "name: jury\njury: [m, prior]\nrule: majority\nties: upper\n"
CALIBRATED = "name: c\ncalibrate: m\n"
BENCH = """name: b
rubric: support-tone
data: [answers.csv, labels.csv]
metrics: [politeness]
judges:
  - judge.yaml
  - {name: jury, jury: [m, prior, random]}
controls: true
truth: {rule: median}
report: {level: 0.9}
stress: {attacks: [bullets, {attack: greeting, sample: 2}], sample: 3}
notes: [A note.]
seed: 3
"""
REPLIES = '{"text": "{}"}\n{"pattern": "Why", "text": "x", "finish": "length"}\n'
VERDICT = (
    '{"item_id":"1","content_hash":"0","judge":"m","signature":"s","status":"ok","labels":'
    '{"politeness":"Polite"},"usage":{"calls":1,"prompt_tokens":3},"cost":0.5,"latency":0.1}\n'
)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder with sound files beside the one that is made."""
    for name, text in (
        ("answers.csv", ANSWERS), ("labels.csv", LABELS), ("judge.yaml", JUDGE),
        ("replies.jsonl", REPLIES),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


@example(b"name: !!timestamp x")
@example(b"name: !!bool x")
@example(b"name: !!int ''")
@example(b"? !!float x\n: 1")
@given(bytes_like(texts("rubrics", ".yaml"), is_yaml=True))
@fuzzed()
def test_rubrics(room: Path, content: bytes) -> None:
    read(room / "x.yaml", content, load_rubric)


@given(bytes_like(PROMPTS) | nested_template(PROMPTS))
@example(b"---\nreply: json\n---\n{% include 'x' %}{% block system %}{% endblock %}")
@fuzzed()
def test_prompts(room: Path, content: bytes) -> None:
    read(room / "x.jinja", content, lambda path: load_prompt(str(path)))


@given(bytes_like([JUDGE, JURY, CALIBRATED], is_yaml=True))
@fuzzed()
def test_judges(room: Path, content: bytes) -> None:
    def reader(path: Path) -> None:
        value, node = load_with_lines(path)
        judge_entry(value, str(path), node)

    read(room / "x.yaml", content, reader)


@given(bytes_like([BENCH], is_yaml=True))
@fuzzed(0.2)
def test_benches(room: Path, content: bytes) -> None:
    read(room / "x.yaml", content, lambda path: load_bench(path).close())


@given(bytes_like([LAYOUT, TALKS], is_yaml=True))
@fuzzed()
def test_layouts(room: Path, content: bytes) -> None:
    read(room / "x.yaml", content, lambda path: load_data(path, RUBRIC))
    read(room / "x.yaml", content, lambda path: jb.study(path))
    read(room / "x.yaml", content, lambda path: load_data(path, RESPONSES))


@given(
    bytes_like([ANSWERS, LABELS, LONG_LABELS, JSONL, "[" + JSONL.strip().replace("\n", ",") + "]"]),
    st.sampled_from(["csv", "tsv", "json", "jsonl", "parquet", "xlsx", "csv.gz", "x"]),
)
@fuzzed()
def test_tables(room: Path, content: bytes, suffix: str) -> None:
    read(room / f"x.{suffix}", content, lambda path: load_data(path, RUBRIC))
    outcome = check([room / f"x.{suffix}", room / "labels.csv"], "support-tone")
    assert all(p.message for p in (*outcome.errors, *outcome.warnings))


@given(
    bytes_like([LABELS, LONG_LABELS, ANSWERS.replace("text", "annotator"), JSONL]),
    bytes_like(["item_id,politeness\n1,Polite\n2,Impolite\n", VERDICT, LABELS]),
)
@fuzzed(0.5)
def test_tables_without_a_layout(room: Path, labels: bytes, verdicts: bytes) -> None:
    (room / "gpt-4.csv").write_bytes(verdicts)
    read(room / "labels.csv", labels, lambda path: jb.layout(path, room / "gpt-4.csv"))
    read(
        room / "labels.csv", labels, lambda path: jb.study(path, room / "gpt-4.csv", rubric=RUBRIC)
    )


@st.composite
def parquet(draw: st.DrawFn) -> bytes:
    """A Parquet file with columns of any kind, sometimes damaged."""
    names = draw(st.lists(st.sampled_from(["item_id", "text", "politeness", "metric", "x", ""]),
                          min_size=1, max_size=4))  # fmt: skip
    rows = draw(st.integers(0, 3))
    kinds: Sequence[st.SearchStrategy[object]] = (
        st.text(max_size=5), st.integers(-9, 9), st.floats(), st.binary(max_size=4), st.dates(),
        st.lists(st.text(max_size=3), max_size=2), st.dictionaries(st.just("a"), st.integers(0, 3)),
        st.timedeltas(), st.datetimes(), st.decimals(allow_nan=False, places=2, max_value=99),
    )  # fmt: skip
    columns = []
    for _ in names:
        cells = draw(st.sampled_from(kinds)) | st.none()
        columns.append(draw(st.lists(cells, min_size=rows, max_size=rows)))
    file = io.BytesIO()
    with suppress(pa.ArrowException, OverflowError, TypeError, ValueError):
        pq.write_table(pa.Table.from_arrays([pa.array(c) for c in columns], names=names), file)
    content = file.getvalue()
    if content and draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(content) - 1))
        content = content[:place] + draw(st.binary(max_size=3)) + content[place + 1 :]
    return content


@given(parquet())
@fuzzed(0.3)
def test_parquet(room: Path, content: bytes) -> None:
    read(room / "x.parquet", content, lambda path: load_data(path, RUBRIC))


@given(st.lists(st.text('"a,\t\n;', max_size=12), min_size=2, max_size=60))
@fuzzed()
def test_quotes_in_any_place(room: Path, lines: list[str]) -> None:
    content = "item_id\ttext\tx\n" + "\n".join(lines)
    read(room / "x.tsv", content.encode(), lambda path: load_data(path, RUBRIC))


@st.composite
def workbook(draw: st.DrawFn) -> bytes:
    """A workbook of any cells, sometimes damaged."""
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    cells = (
        st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=5)
        | st.none() | st.integers(-9, 9) | st.floats(-9, 9) | st.booleans() | st.dates()
    )  # fmt: skip
    sheet.append(["item_id", "text", "politeness"])
    for row in draw(st.lists(st.lists(cells, max_size=4), max_size=3)):
        sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    content = file.getvalue()
    if draw(st.integers(0, 2)):
        # The file holds the time at which it was made, so that its length is not always the same.
        place = len(content) * draw(st.integers(0, 9_999)) // 10_000
        content = content[:place] + draw(st.binary(max_size=3)) + content[place + 1 :]
    return content


@given(workbook())
@fuzzed(0.2)
def test_workbooks(room: Path, content: bytes) -> None:
    read(room / "x.xlsx", content, lambda path: load_data(path, RUBRIC))


@given(bytes_like([REPLIES]))
@example(b"[" * 100_000)
@fuzzed(0.5)
def test_scripted_replies(room: Path, content: bytes) -> None:
    read(room / "x.jsonl", content, Scripted.from_file)


@given(bytes_like([VERDICT, VERDICT * 3, ANSWERS, JSONL, SET]))
@fuzzed(0.5)
def test_what_a_run_folder_holds(room: Path, content: bytes) -> None:
    folder = RunFolder(room)
    read(folder.verdict_path("m"), content, lambda _: list(folder.verdicts("m")))
    read(room / "answers.jsonl", content, lambda _: list(folder.answers()))
    read(room / "labels.jsonl", content, lambda _: list(folder.labels()))
    read(room / "run.json", content, lambda _: folder.manifest())
    read(room / "rubric.json", content, lambda _: folder.rubric())
    read(room / "any.jsonl", content, lambda path: list(read_lines(path)))


@given(
    bytes_like([LAYOUT, BENCH, JUDGE, JURY, *texts("rubrics", ".yaml")], is_yaml=True)
    | bytes_like([SET, JSONL, ANSWERS, *texts("prompts", ".jinja")]),
    st.sampled_from(["yaml", "yml", "jsonl", "csv", "jinja", "txt"]),
)
@fuzzed(0.3)
def test_check_raises_nothing(room: Path, content: bytes, suffix: str) -> None:
    path = room / f"x.{suffix}"
    path.write_bytes(content)
    check([path], "support-tone")


@example("x" * 5000)
@example("~nobody/x")
@given(TEXT | st.sampled_from(["~nobody/x", "x" * 5000, "\0", "a\0b", ".", "/", "", "*", "\ud800"]))
@fuzzed()
def test_names_of_files(room: Path, name: str) -> None:
    for reader in (load_rubric, load_prompt):
        with suppress(JudgebenchError):
            reader(name, room)
    with suppress(JudgebenchError):
        load_bench(Path(name))


@given(
    st.dictionaries(st.sampled_from(["name", "rubric", "data", "judges", "data_folder"]), VALUES)
)
@fuzzed(0.3)
def test_benches_of_any_values(room: Path, values: dict[str, object]) -> None:
    content = yaml.dump({"rubric": "support-tone", "data": "answers.csv", **values})
    read(room / "x.yaml", content.encode("utf-8", "surrogatepass"), lambda p: load_bench(p).close())


@given(st.lists(SCALARS, min_size=1, max_size=3))
@fuzzed(0.2)
def test_several_data_files_of_any_name(room: Path, names: list[object]) -> None:
    with suppress(JudgebenchError):
        load_data([room / str(name) for name in names], RUBRIC)
