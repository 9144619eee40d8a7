"""A set that grows while it is made: every item is on disk before the next is waited for.

`SET.jsonl` holds what counts, `SET.rejected.jsonl` what failed a check, with the reasons; a model's
unreadable reply is kept there as it came. Making goes on where it was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from judgebench.errors import Problem, SetupError
from judgebench.files import drop_torn_line, read_lines, to_line, write_atomically
from judgebench.stress.probes.altered import AlteredAnswer
from judgebench.stress.probes.sets import read_set, to_set_line

Key = tuple[str, str, str, int]  # item, recipe, generator, seed


def rejected_path(path: Path) -> Path:
    """Where what failed a check is kept, beside the set."""
    return path.with_name(f"{path.stem}.rejected.jsonl")


class SetFile:
    """A set file open for adding. `accepted` are the items in it that count.

    Raises SetupError where the file is no set.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        for part in (path, rejected_path(path)):
            _mend_last_line(part)
        self.accepted = read_set(path) if path.is_file() and path.stat().st_size else []
        self._ids = {item.item_id for item in self.accepted}
        self._done = {_key(item) for item in self.accepted} | set(_keys(rejected_path(path)))

    def has(self, item_id: str, recipe_hash: str, generator: str, seed: int) -> bool:
        """Whether that item was made before, and kept or rejected.

        Raises SetupError where an item of that id counts that was made otherwise.
        """
        key = (item_id, recipe_hash, generator, seed)
        if key not in self._done and item_id in self._ids:
            message = (
                "holds this item as another recipe, model or seed made it: choose another file "
                "with --to, or remove this one"
            )
            raise SetupError(Problem(message, str(self.path), field="item_id", found=item_id))
        return key in self._done

    def add(self, item: AlteredAnswer) -> None:
        """Write an item where it belongs, by its checks."""
        failed = item.failed_checks
        path = rejected_path(self.path) if failed else self.path
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(to_line(to_set_line(item)))
        self._done.add(_key(item))
        if not failed:
            self.accepted.append(item)
            self._ids.add(item.item_id)

    def replace_checked(self, items: Iterable[AlteredAnswer]) -> None:
        """Put items with new checks in the place of those of the same id; what fails one now is
        moved to the rejected."""
        checked = {item.item_id: item for item in items}
        all_items = [checked.get(item.item_id, item) for item in self.accepted]
        kept = [item for item in all_items if not item.failed_checks]
        for item in all_items:
            if item.failed_checks:
                self.add(item)
        write_atomically(self.path, "".join(to_line(to_set_line(i)) for i in kept).encode())
        self.accepted = kept
        self._ids = {item.item_id for item in kept}


_BEGIN = b'{"item_id":'


def _mend_last_line(path: Path) -> None:
    """Drop a line that a killed process left torn; end one that was written by hand."""
    tail = path.read_bytes().rpartition(b"\n")[2] if path.is_file() else b""
    if not tail:
        return
    try:
        json.loads(tail)
    except ValueError:
        # As this module begins a line, cut off anywhere; what else it is, is told.
        if tail.startswith(_BEGIN) or _BEGIN.startswith(tail):
            drop_torn_line(path)
    else:
        with path.open("ab") as file:
            file.write(b"\n")


def _key(item: AlteredAnswer) -> Key:
    return item.item_id, item.recipe_hash, item.generator, item.seed


def _keys(path: Path) -> Iterator[Key]:
    if path.is_file():
        for _, line in read_lines(path):
            yield (
                line.get("item_id", ""), line.get("recipe_hash", ""),
                line.get("generator", "rule"), line.get("seed", 0),
            )  # fmt: skip
