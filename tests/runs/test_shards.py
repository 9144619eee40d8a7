"""Several processes that share one run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scripted_judges import GOOD, Listener, ScriptedBackend, answers, bench

from judgebench.errors import RunLocked, SetupError
from judgebench.judges.config import JuryConfig
from judgebench.runs.folder import RunFolder, Shard
from judgebench.runs.run_bench import Sharing, run

N = 20


def part(folder: RunFolder, shard: str, listener: Listener | None = None) -> ScriptedBackend:
    """Run one shard; the backend that was asked."""
    backend = ScriptedBackend(lambda request: GOOD)
    run(
        bench({"m": backend}, answers(N), juries=(JuryConfig(name="j", jury=("m", "prior")),)),
        folder,
        sharing=Sharing(Shard.parse(shard)),
        progress=listener,
    )
    return backend


def test_shards_judge_every_answer_once_and_the_last_one_finishes(tmp_path: Path) -> None:
    folder, listener = RunFolder(tmp_path), Listener()
    first = part(folder, "1/3", listener)
    part(folder, "3/3")
    assert "m 13" in listener.heard[-1]
    assert folder.manifest()["state"] == "running"
    assert list(folder.verdicts("j")) == list(folder.verdicts("prior")) == []
    last = part(folder, "2/3")
    assert (len(first.requests), len(last.requests)) == (7, 7)
    assert folder.manifest()["state"] == "finished"
    assert "j" in folder.manifest()["judges"]
    for judge in ("m", "prior", "j"):
        assert Counter(v.item_id for v in folder.verdicts(judge)) == {f"i{i}": 1 for i in range(N)}
    assert [path.name for path in folder.verdict_files("m")] == ["verdicts-m.jsonl"]


def test_a_run_without_shards_goes_on_where_shards_ended(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    part(folder, "2/4")
    backend = ScriptedBackend(lambda request: GOOD)
    run(bench({"m": backend}, answers(N)), folder)
    assert len(backend.requests) == N - 5
    assert len(list(folder.verdicts("m"))) == N


def test_a_shard_goes_on_from_a_run_without_shards(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    run(bench({"m": ScriptedBackend(lambda request: GOOD)}, answers(N)), folder)
    assert part(folder, "1/2").requests == []


def test_a_shard_is_held_by_one_and_all_count_alike(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.locked(Shard(1, 2)):
        with RunFolder(tmp_path).locked(Shard(2, 2)):
            pass
        with pytest.raises(RunLocked, match="works on shard 1/2"), folder.locked(Shard(1, 2)):
            pass
        with pytest.raises(RunLocked, match="in 2 shards, not 3"), folder.locked(Shard(2, 3)):
            pass
        with pytest.raises(RunLocked, match="another process is writing"), folder.locked():
            pass
    with folder.locked(), pytest.raises(RunLocked, match="all of"), folder.locked(Shard(2, 2)):
        pass
    with folder.locked(Shard(2, 3)):  # nobody is there any more: whoever comes first says
        pass


def test_a_lock_that_was_emptied_does_not_say_how_many_shards_there_are(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.locked(Shard(1, 2)):
        (tmp_path / ".lock").write_text("")
        told = "is being worked on by others; wait for them to end"
        with pytest.raises(RunLocked, match=told), folder.locked(Shard(2, 2)):
            pass


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/2/3", "-1/2", "1/0", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(SetupError, match="is no shard"):
        Shard.parse(text)


def test_a_budget_cannot_be_shared(tmp_path: Path) -> None:
    backend = ScriptedBackend(lambda request: GOOD)
    with pytest.raises(SetupError, match="budget"):
        run(bench({"m": backend}), RunFolder(tmp_path), budget=1.0, sharing=Sharing(Shard(1, 2)))
    assert not (tmp_path / "run.json").exists()
