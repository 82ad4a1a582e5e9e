"""What the tests share: a directory with a database in it."""

from __future__ import annotations

import pathlib
from typing import Iterator

import pytest

import sheaf


@pytest.fixture
def shop(tmp_path: pathlib.Path) -> Iterator[sheaf.Connection]:
    connection = sheaf.connect(tmp_path / "shop", memory_bytes=64 << 20)
    yield connection
    connection.close()
