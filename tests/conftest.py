"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[1]
SHARED_DATA = REPO.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets, which are not part of the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the public data sets in ../shared/data, which are not distributed here")
    return SHARED_DATA
