import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_texts import NASTY, verdicts

from judgebench.errors import RunLocked, SetupError
from judgebench.files import read_lines, to_line
from judgebench.records import Answer, HumanLabel, Status, Verdict
from judgebench.rubric import load_rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.verdict_log import VerdictWriter

SAFETY = load_rubric("medical-safety")


def verdict(n: int = 0, **more) -> Verdict:
    return replace(Verdict(f"i{n}", "hash", "m", "sig", Status.OK, {"bias": "No"}), **more)


def write(path: Path, *found: Verdict) -> None:
    with VerdictWriter(path) as writer:
        for one in found:
            writer.write(one)


# --- verdicts ------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(found=st.lists(verdicts, max_size=5))
def test_verdicts_are_read_as_they_were_written(tmp_path: Path, found: list[Verdict]) -> None:
    folder = RunFolder(tmp_path)
    folder.verdict_path("m").unlink(missing_ok=True)
    write(folder.verdict_path("m"), *found)
    assert list(folder.verdicts("m")) == found
    assert folder.verdict_path("m").read_bytes().count(b"\n") == len(found)  # one line a fact


def test_a_line_leaves_out_what_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "v.jsonl", verdict(cost=0.0))
    line = json.loads((tmp_path / "v.jsonl").read_text())
    assert len(line.pop("crc")) == 8
    assert line == {
        "item_id": "i0", "content_hash": "hash", "judge": "m", "signature": "sig",
        "status": "ok", "labels": {"bias": "No"}, "cost": 0.0,
    }  # fmt: skip


def test_a_verdict_is_with_the_system_when_write_returns(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    with VerdictWriter(path) as writer:
        for n in range(3):
            writer.write(verdict(n))
            assert len(list(read_lines(path))) == n + 1


def test_a_second_writer_appends(tmp_path: Path) -> None:
    path = tmp_path / "verdicts-m.jsonl"
    write(path, verdict(0))
    write(path, verdict(1))
    assert [v.item_id for v in RunFolder(tmp_path).verdicts("m")] == ["i0", "i1"]


# --- torn lines ----------------------------------------------------------------------------------


def check_torn(folder: RunFolder, found: list[Verdict], share: float) -> None:
    """Cut the last line at `share` of its bytes, then read, drop and go on."""
    path = folder.verdict_path("m")
    path.unlink(missing_ok=True)
    write(path, *found)
    whole = path.read_bytes()
    begin = whole[:-1].rfind(b"\n") + 1
    cut = begin + int(share * (len(whole) - begin))
    path.write_bytes(whole[:cut])
    assert list(folder.verdicts("m")) == found[:-1]
    with VerdictWriter(path) as writer:
        assert writer.torn_bytes == cut - begin
        writer.write(found[-1])
    assert path.read_bytes() == whole


def test_a_line_torn_at_any_byte_is_dropped_and_the_file_goes_on(tmp_path: Path) -> None:
    last = verdict(1, raw="é\n😀 \u2028", reason="\ud800")
    size = len(to_line({"raw": last.raw})) + 200  # more steps than the line has bytes
    for step in range(size):
        check_torn(RunFolder(tmp_path), [verdict(0), last], step / size)


@pytest.mark.parametrize(
    "damage",
    [
        b'{"item_id": "i1", "stat', b"", b"null", b"3", b'["a"]', b"\xff\xfe{}", b"\0\0\0\0",
        b"[" * 100_000, b'{"item_id": "i1"}', b'{"status": "ok"}',
        b'{"item_id":"i","content_hash":"h","judge":"m","signature":"s","status":"fine"}',
        b'{"item_id":"i","content_hash":"h","judge":"m","signature":"s","status":"ok","mood":1}',
        b'{"item_id":"i","content_hash":"h","judge":"m","signature":"s","status":"ok","usage":3}',
    ],
    ids=lambda line: repr(line[:24]),
)  # fmt: skip
def test_damage_in_the_middle_is_told_with_its_line(tmp_path: Path, damage: bytes) -> None:
    folder = RunFolder(tmp_path)
    path = folder.verdict_path("m")
    write(path, verdict(0), verdict(1), verdict(2))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + damage + b"\n" + lines[2])
    with pytest.raises(SetupError) as caught:
        list(folder.verdicts("m"))
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(path), 2)
    assert len(str(problem)) < 400


# --- the folder ----------------------------------------------------------------------------------


def test_inputs_are_read_as_they_were_written(tmp_path: Path) -> None:
    answers = [Answer(f"i{n}", text, question=text, reference=text, system=text, group=text,
                      metadata={"x": text}) for n, text in enumerate(NASTY)]  # fmt: skip
    answers.append(Answer("plain", "text"))
    labels = [HumanLabel(a.item_id, text, "bias", label) for a in answers
              for text in NASTY for label in ("No", None)]  # fmt: skip
    folder = RunFolder(tmp_path)
    folder.write_data(SAFETY, answers, labels)
    assert folder.rubric() == SAFETY
    assert folder.rubric().content_hash == SAFETY.content_hash
    assert list(folder.answers()) == answers
    assert [a.content_hash for a in folder.answers()] == [a.content_hash for a in answers]
    assert folder.labels() == labels


def test_the_manifest(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.manifest() == {}
    with pytest.raises(SetupError, match="is not a run folder"):
        RunFolder.existing(tmp_path)
    folder.write_manifest({"name": "b", "file": "caf\udce9.csv", "n": {"é": 1}})
    assert folder.manifest() == {"name": "b", "file": "caf\udce9.csv", "n": {"é": 1}}
    assert RunFolder.existing(tmp_path).manifest() == folder.manifest()
    folder.write_manifest({"name": "c"})
    assert folder.manifest() == {"name": "c"}
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("name", ["run.json", "rubric.json", "answers.jsonl", "labels.jsonl"])
@pytest.mark.parametrize("damage", [None, b"{", b"3\n", b'{"no": "such"}\n', b"\xff\n"])
def test_a_damaged_or_missing_file_is_a_setup_error(tmp_path: Path, name: str, damage) -> None:
    folder = RunFolder(tmp_path)
    folder.write_manifest({"name": "b"})
    folder.write_data(SAFETY, [Answer("i", "x")], [HumanLabel("i", "a", "bias", "No")])
    read = {"run.json": folder.manifest, "rubric.json": folder.rubric,
            "answers.jsonl": folder.answers, "labels.jsonl": folder.labels}[name]  # fmt: skip
    assert read()
    path = tmp_path / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    if name == "run.json" and damage in (None, b'{"no": "such"}\n'):
        assert read() == ({} if damage is None else {"no": "such"})
    elif name.endswith(".jsonl") and damage == b"{":
        assert not read()  # a torn last line
    else:
        with pytest.raises(SetupError) as caught:
            read()
        assert {p.file for p in caught.value.problems} == {str(path)}


# --- the lock ------------------------------------------------------------------------------------

HOLD = """
    import sys
    from pathlib import Path
    from judgebench.errors import RunLocked
    from judgebench.runs.folder import RunFolder

    try:
        with RunFolder(Path(sys.argv[1])).locked():
            print("held", flush=True)
            sys.stdin.readline()
    except RunLocked as error:
        print(f"refused: {error}", flush=True)
"""


def hold(path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_process_cannot_write(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with hold(folder.path) as holder:
        assert first_line(holder) == "held"
        with pytest.raises(RunLocked, match="another process"), folder.locked():
            pass
        assert list(folder.verdicts("m")) == []  # reading needs no lock
        holder.kill()  # a killed process holds nothing
        holder.wait()
    with folder.locked(), hold(folder.path) as second:
        assert first_line(second).startswith("refused: another process is writing to")
        second.wait()
    with folder.locked():
        pass


def test_the_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), folder.locked():
        _ = 1 / 0
    with folder.locked(), pytest.raises(RunLocked), RunFolder(tmp_path).locked():
        pass
