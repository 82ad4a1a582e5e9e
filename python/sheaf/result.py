"""A result as a whole: for libraries of columns, and for notebooks."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._sheaf import Answer

#: So many rows are shown in a notebook.
_SHOWN_ROWS = 20
#: A line of an EXPLAIN in the form of a tree: its depth, and what it says.
_NODE = re.compile(r"^(\s*)-> (.*)$")


class Result:
    """Rows in Arrow's form. Libraries take it by the Arrow PyCapsule interface, and copy nothing:

    `pyarrow.table(result)`, `polars.DataFrame(result)`, `duckdb.sql("from result")`.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __len__(self) -> int:
        return len(self._answer)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [column[0] for column in self._answer.description]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._answer.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._answer.__arrow_c_schema__()

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        import pyarrow  # type: ignore[import-untyped]

        return pyarrow.table(self)

    def to_pandas(self, **options: Any) -> Any:
        """A `pandas.DataFrame`; `options` are those of `pyarrow.Table.to_pandas`."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first rows, or the tree of an EXPLAIN."""
        if self.columns == ["EXPLAIN"]:
            plan = "\n".join(str(row[0]) for row in self._answer.first(len(self)))
            if _NODE.match(plan.split("\n", 1)[0]):
                return plan_as_html(plan)
        return rows_as_html(self.columns, self._answer.first(_SHOWN_ROWS), len(self))


def rows_as_html(columns: list[str], rows: list[tuple[Any, ...]], count: int) -> str:
    """A table of the first rows of `count`."""

    def cell(value: Any) -> str:
        return "<em>NULL</em>" if value is None else html.escape(str(value))

    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    note = f"{len(rows)} of {count} rows" if count > len(rows) else f"{count} rows"
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{note}</p>"


def plan_as_html(plan: str) -> str:
    """The tree of a plan, whose branches can be folded. Lines that are no node belong to the node before them."""
    nodes: list[tuple[int, list[str]]] = []
    for line in plan.splitlines():
        found = _NODE.match(line)
        if found:
            nodes.append((len(found[1]), [found[2]]))
        elif nodes and line.strip():
            nodes[-1][1].append(line.strip())
    parts: list[str] = []
    open_depths: list[int] = []
    for position, (depth, lines) in enumerate(nodes):
        while open_depths and open_depths[-1] >= depth:
            open_depths.pop()
            parts.append("</details>")
        text = "<br>".join(html.escape(line) for line in lines)
        has_children = position + 1 < len(nodes) and nodes[position + 1][0] > depth
        if has_children:
            parts.append(f'<details open style="margin-left:1.5em"><summary>{text}</summary>')
            open_depths.append(depth)
        else:
            parts.append(f'<div style="margin-left:2.5em">{text}</div>')
    parts.extend("</details>" for _ in open_depths)
    return "<div style='font-family:monospace'>" + "".join(parts) + "</div>"
