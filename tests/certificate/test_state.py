"""The file of a watch: nothing lost, nothing counted twice, damage refused."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import sqlite3
import time
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from certificate_case import A_STEP, METRIC, START, anchors, answer, certificate, usual, write
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebench.certificate.reading import Batch
from judgebench.certificate.record import Validity
from judgebench.certificate.seen import Seen
from judgebench.certificate.state import State, StateFile
from judgebench.certificate.watch import Watch
from judgebench.errors import SetupError

PATIENCE = 60.0
FRESH = multiprocessing.get_context("forkserver")
FRESH.set_forkserver_preload(["judgebench.certificate.watch", "certificate_case"])


def state_in(path: Path) -> State:
    return StateFile(path, certificate()).read()


def started(*arguments: Any) -> Any:
    process = FRESH.Process(target=write, args=arguments)
    process.start()
    return process


@pytest.mark.parametrize("kills", [15, pytest.param(50, marks=pytest.mark.long)])
def test_killed_at_any_moment_nothing_is_lost_or_counted_twice(tmp_path: Path, kills: int) -> None:
    moments, path, steps = random.Random(0), tmp_path / "judge.watch", 0
    for kill in range(kills):
        told = tmp_path / f"told {kill}"
        told.touch()
        # The last step again: it may have been counted though nobody was told.
        process = started(path, told, "", max(0, steps - 1), 10**6)
        end, lines = time.monotonic() + PATIENCE, moments.randint(1, 3)
        while len(told.read_text().split()) < lines and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        process.join()
        acknowledged = [int(step) for step in told.read_text().split()[1:]]
        found = state_in(path)
        counted = (found.answers - 1) // A_STEP if found.answers else 0
        assert found.answers in (0, counted * A_STEP + 1), "a step was torn"
        assert counted >= max([steps, *(step + 1 for step in acknowledged)])
        assert counted <= max([steps, *(step + 2 for step in acknowledged)]) + 1
        steps = counted
    assert steps > 0.4 * kills
    again = Watch(certificate(), path).update_rows([Batch(usual(0, steps * A_STEP))])
    assert again.counted.answers == 0
    assert {p.name for p in tmp_path.glob("*judge.watch*")} == {"judge.watch"}


def test_two_writers_add_up(tmp_path: Path) -> None:
    path, told = tmp_path / "judge.watch", [tmp_path / "x told", tmp_path / "y told"]
    writers = [started(path, told[i], "xy"[i], 0, 30) for i in (0, 1)]
    for writer in writers:
        writer.join(PATIENCE)
        assert writer.exitcode == 0
    assert state_in(path).answers == 2 * 30 * A_STEP + 1
    assert state_in(path).sums[f"{METRIC}:failures"].n == 2 * 30 * A_STEP + 1


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The state of a watch that has seen 300 answers."""
    path = tmp_path / "judge.watch"
    watch = Watch(certificate(), path)
    watch.update_rows([Batch(usual(0, 300))], now=START)
    watch.update_rows([Batch(anchors(certificate(), 10))], now=START)
    watch.close()
    return path


@pytest.mark.parametrize("left", [0, 1, 100, 4096, 0.5, 0.95])
def test_a_truncated_file_is_refused(kept: Path, left: float) -> None:
    content = kept.read_bytes()
    kept.write_bytes(content[: int(left if left >= 1 else left * len(content))])
    with pytest.raises(SetupError, match=r"judge\.watch.*cannot be used"):
        Watch(certificate(), kept)


def test_another_file_is_refused(kept: Path) -> None:
    kept.write_text("item_id,label\n1,Safe\n" * 400)
    with pytest.raises(SetupError, match=r"judge\.watch.*not a database"):
        Watch(certificate(), kept)


def opened(path: Path) -> Watch | str:
    """The watch, or why it cannot be opened."""
    try:
        return Watch(certificate(), path)
    except SetupError as error:
        return str(error)


def test_a_changed_byte_is_refused_or_changes_nothing(kept: Path) -> None:
    content, before, refused = kept.read_bytes(), asdict(state_in(kept)), 0
    places = range(16, len(content), 211)
    for place in places:
        damaged = kept.with_name("damaged.watch")
        damaged.write_bytes(content[:place] + bytes([content[place] ^ 0x15]) + content[place + 1 :])
        watch = opened(damaged)
        if isinstance(watch, str):
            refused += 1
            assert "damaged.watch" in watch
            continue
        assert asdict(StateFile(damaged, certificate()).read()) == before
        assert watch.update_rows([Batch(usual(0, 300))]).counted.answers == 0
    assert refused > len(places) / 4


def test_a_row_that_was_taken_out_is_missed(kept: Path) -> None:
    with sqlite3.connect(kept) as db:
        db.execute("DELETE FROM seen WHERE hash = (SELECT min(hash) FROM seen)")
    with pytest.raises(SetupError, match="rows that were counted are missing"):
        Watch(certificate(), kept)


def test_a_state_of_another_certificate_is_refused(kept: Path) -> None:
    with pytest.raises(SetupError, match=r"judge\.watch.*another certificate"):
        Watch(certificate("another"), kept)
    assert state_in(kept).answers == 300


def test_the_clock_never_goes_back(tmp_path: Path) -> None:
    until = START + timedelta(days=30)
    made = certificate(valid=Validity(until=until, answers=None, model_changes=None))
    watch = Watch(made, tmp_path / "judge.watch")
    assert watch.status(now=START).state == "valid"
    assert watch.status(now=until).state == "expired"
    watch.close()
    again = Watch(made, tmp_path / "judge.watch").status(now=START)
    assert (again.state, again.exit_code) == ("expired", 5)
    assert again.seen.last == until.isoformat(timespec="seconds")
    assert again.seen.started == START.isoformat(timespec="seconds")


def test_rows_that_were_counted_are_not_counted_again(kept: Path) -> None:
    before = state_in(kept)
    watch = Watch(certificate(), kept)
    counted = watch.update_rows([Batch(usual(0, 300)), Batch(usual(290, 20))]).counted
    assert (counted.answers, counted.before) == (10, 310)
    assert state_in(kept).answers == before.answers + 10
    labelled = [replace(r, labels={METRIC: {"Dee": "Safe"}}) for r in usual(0, 5)]
    assert [watch.update_rows([Batch(labelled)]).counted.labels for _ in range(2)] == [5, 0]


def test_anchors_count_once_for_each_source_and_again_where_that_is_said(tmp_path: Path) -> None:
    watch, rows = Watch(certificate(), tmp_path / "w"), anchors(certificate(), 10)

    def counted(source: str, again: bool = False) -> int:
        found = watch.update_rows([Batch(rows, source)], again=again, now=START)
        return found.counted.anchors

    assert [counted("monday.csv"), counted("monday.csv"), counted("tuesday.csv")] == [10, 0, 10]
    assert counted("monday.csv", again=True) == 10


def with_chance(item: object, chance: float) -> Seen:
    return answer(item, labels={METRIC: {"Dee": "Safe"}}, chance=chance)


def test_a_smaller_chance_than_before_is_refused_and_nothing_is_counted(tmp_path: Path) -> None:
    watch = Watch(certificate(), tmp_path / "w")
    watch.update_rows([Batch([with_chance(i, 0.2 + i / 10) for i in range(4)])], now=START)
    before = asdict(state_in(tmp_path / "w"))
    new = [with_chance(10, 0.5), with_chance("rare", 0.1)]
    with pytest.raises(SetupError, match=r"rare: 0\.1.*0\.2 or more"):
        watch.update_rows([Batch(new)], now=START)
    assert asdict(state_in(tmp_path / "w")) == before
    assert watch.update_rows([Batch(new[:1])], now=START).counted.labels == 1


ROWS = st.lists(
    st.builds(
        lambda i, label, system, people, chance: answer(
            i, label, system=system, chance=chance,
            labels={METRIC: people} if people else {}, model="m",
        ),
        st.integers(0, 60), st.sampled_from(["Safe", "Unsafe", ""]), st.sampled_from("abc"),
        st.dictionaries(st.sampled_from(["Dee", "Eve"]), st.sampled_from(["Safe", "Unsafe"])),
        st.sampled_from([0.5, 0.7, 1.0]),
    ),
    max_size=30, unique_by=lambda row: row.item,
)  # fmt: skip
UPDATES = st.lists(st.tuples(ROWS, st.integers(0, 20), st.integers(0, 5)), max_size=5)


@settings(max_examples=12)
@given(UPDATES)
def test_a_watch_that_is_closed_after_each_update_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, updates: list[tuple[list[Seen], int, int]]
) -> None:
    path = tmp_path_factory.mktemp("watch") / "judge.watch"
    made, held, told = certificate(), Watch(certificate()), []
    first = [[with_chance("first", 0.5)]]  # sets the limit of weights
    batches = first + [rows + anchors(made, n, k) for rows, n, k in updates]
    for day, rows in enumerate(batches):
        now = START + timedelta(days=day)
        one = held.update_rows([Batch(rows)], now=now)
        opened = Watch(made, path)
        other = opened.update_rows([Batch(rows)], now=now)
        opened.close()
        told.append(one.state)
        assert (one.counted, one.state, one.reasons) == (other.counted, other.state, other.reasons)
        assert asdict(one.seen) == asdict(other.seen) == asdict(state_in(path))
    assert len(told) == len(batches)


def test_a_failed_update_leaves_the_file_as_it_was(kept: Path) -> None:
    before, watch = kept.read_bytes(), Watch(certificate(), kept)

    rows = [answer("new"), replace(answer("bad"), verdicts=None)]  # type: ignore[arg-type]
    with pytest.raises((AttributeError, TypeError)):
        watch.update_rows([Batch(rows)])
    assert kept.read_bytes() == before
    assert watch.update_rows([Batch([answer("new")])]).counted.answers == 1


def test_a_copy_of_the_file_is_a_whole_state(kept: Path, tmp_path: Path) -> None:
    shutil.copy(kept, tmp_path / "copy.watch")
    assert asdict(state_in(tmp_path / "copy.watch")) == asdict(state_in(kept))
