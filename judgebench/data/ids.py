"""Finding the row of an id among many, in 20 bytes an id whatever its length."""

from __future__ import annotations

from array import array
from collections.abc import Callable

_FREE = -1


class IdTable:
    """The row of every id that was added. The ids themselves stay where `id_of` reads them.

    A hash table with open addressing: a slot holds a row, at most half of the slots are taken.
    A dictionary of a million ids takes five times the memory.
    """

    def __init__(self, id_of: Callable[[int], str]) -> None:
        self._id_of = id_of
        self._hashes = array("q")  # of the id of each row
        self._slots = array("i", [_FREE]) * 64

    def __len__(self) -> int:
        return len(self._hashes)

    def find(self, item_id: str) -> int | None:
        """The id's row; None where it was not added."""
        row = self._slots[self._slot(item_id, hash(item_id))]
        return None if row == _FREE else row

    def find_or_add(self, item_id: str) -> int:
        """The id's row. A new one gets the next row, of which `id_of` is to give it from now on."""
        hashed = hash(item_id)
        slot = self._slot(item_id, hashed)
        row = self._slots[slot]
        if row == _FREE:
            row = self._slots[slot] = len(self._hashes)
            self._hashes.append(hashed)
            if 2 * len(self._hashes) > len(self._slots):
                self._grow()
        return row

    def _slot(self, item_id: str, hashed: int) -> int:
        """The slot that holds the id, or the free one where it would be."""
        slots, hashes = self._slots, self._hashes
        most = len(slots) - 1
        slot = hashed & most
        while (row := slots[slot]) != _FREE:
            if hashes[row] == hashed and self._id_of(row) == item_id:
                break
            slot = (slot + 1) & most
        return slot

    def _grow(self) -> None:
        slots = array("i", [_FREE]) * (4 * len(self._slots))
        most = len(slots) - 1
        for row, hashed in enumerate(self._hashes):
            slot = hashed & most
            while slots[slot] != _FREE:
                slot = (slot + 1) & most
            slots[slot] = row
        self._slots = slots
