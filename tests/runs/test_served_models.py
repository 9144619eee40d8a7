"""A judge whose model is replaced during a run, or before it is resumed."""

from pathlib import Path

from aligned import align_run
from killed_run import ANSWERS, REPLY, bench_file
from loopback import Body, Loopback, completion, raw
from scripted_judges import Listener

from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.runs.run_bench import run

HALF = ANSWERS // 2
ASKED = "gpt-4o-2024-08-06"


def judged(tmp_path: Path, server: Loopback) -> list[str]:
    """What the run says of models, and what the tables say."""
    listener, folder = Listener(), RunFolder(tmp_path / "run")
    run(load_bench(bench_file(tmp_path, server.base_url)), folder, progress=listener)
    notes = align_run(folder).notes
    said = [
        line for line in (*listener.heard, *notes) if ": its verdicts" in line or "engine" in line
    ]
    assert said[: len(said) // 2] == said[len(said) // 2 :]  # both say the same
    return said[: len(said) // 2]


def serving(*models: str) -> Loopback:
    """A server that is another model, or engine, after each half of the answers."""

    def script(body: Body, n: int):
        model, _, engine = models[min(n // HALF, len(models) - 1)].partition("/")
        return raw({**completion(REPLY), "model": model, "system_fingerprint": engine})

    return Loopback(script)


def test_a_model_that_is_replaced_during_a_run_is_reported(tmp_path: Path) -> None:
    with serving(ASKED, "tiny-model") as server:
        said = judged(tmp_path, server)
    assert said == [
        f"remote: its verdicts came from 2 models ({ASKED} 30, tiny-model 30): the judge may have "
        "been replaced during the run. Name a fixed version and judge in a new folder."
    ]


def test_a_resume_that_meets_another_model_is_reported(tmp_path: Path) -> None:
    with serving(ASKED) as server:
        assert judged(tmp_path, server) == []
        path = tmp_path / "run" / "verdicts-remote.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:50]))
        server.script = serving("tiny-model").script
        (said,) = judged(tmp_path, server)
        assert len(server.bodies) == ANSWERS + 10
    assert f"({ASKED} 50, tiny-model 10)" in said


def test_an_alias_is_recorded_and_is_no_warning(tmp_path: Path) -> None:
    with serving(ASKED + "/fp_1") as server:  # what is asked for is `loopback`
        assert judged(tmp_path, server) == []
    found = RunFolder(tmp_path / "run")
    assert {v.model for v in found.verdicts("remote")} == {f"{ASKED}, engine fp_1"}


def test_an_engine_that_changes_is_a_note(tmp_path: Path) -> None:
    with serving(ASKED + "/fp_1", ASKED + "/fp_2") as server:
        (said,) = judged(tmp_path, server)
    assert said == (
        "remote: the engine of its model changed during the run "
        f"({ASKED}, engine fp_1 30, {ASKED}, engine fp_2 30)."
    )
