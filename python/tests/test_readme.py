"""The examples of the README run, one after the other, in one directory."""

from __future__ import annotations

import pathlib
import re

import pytest


def test_examples(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pyarrow", "polars", "sqlalchemy"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    readme = pathlib.Path(__file__).parent.parent / "README.md"
    examples = re.findall(r"```python\n(.*?)```", readme.read_text(), re.S)
    assert len(examples) == 3
    for example in examples:
        exec(compile(example, str(readme), "exec"), {})
