"""Cursors of PEP 249. The rows of a result are in the program's memory when `execute` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Iterator, Sequence

from . import errors
from .errors import translated
from .result import Result

if TYPE_CHECKING:
    from ._sheaf import Answer
    from .connection import Connection

#: So many rows become tuples at a time when they are fetched one by one.
_TAKEN_AT_A_TIME = 256


class Cursor:
    """Made by `Connection.cursor`. Iterating gives the rows that were not fetched yet."""

    def __init__(self, connection: Connection) -> None:
        #: The connection that it belongs to.
        self.connection = connection
        #: How many rows `fetchmany` gives.
        self.arraysize = 1
        #: Of the last statement: rows that were found or changed. Of an UPDATE those found, changed or not. -1 before.
        self.rowcount = -1
        #: The first number that AUTO_INCREMENT gave in the last INSERT, or None.
        self.lastrowid: int | None = None
        self._answers: list[Answer] = []
        self._taken: list[tuple[Any, ...]] = []
        self._closed = False

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """A tuple of seven values for each column, the name first; None of a statement without rows."""
        answer = self._answer()
        return answer.description if answer is not None and answer.has_rows else None

    def execute(self, sql: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Run a statement; each `?` is one of the parameters. Returns the cursor itself."""
        self._begin()
        if isinstance(parameters, (str, bytes, dict)):
            raise errors.ProgrammingError(1210, "Parameters are a sequence, such as a tuple")
        with translated():
            self._answers = self.connection._session.execute(sql, parameters)[::-1]
        self._show_counts()
        return self

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Cursor:
        """Run a statement for each row of parameters. `rowcount` is that of all; rows that it finds are dropped."""
        self._begin()
        with translated():
            self.rowcount, last = self.connection._session.execute_many(sql, rows)
        self.lastrowid = last or None
        return self

    def callproc(self, name: str, parameters: Sequence[Any] = ()) -> Sequence[Any]:
        """CALL a procedure. Values of OUT parameters are in user variables, as MySQL has them: pass `@name` in a CALL."""
        marks = ", ".join("?" * len(parameters))
        self.execute(f"call {name}({marks})", parameters)
        return parameters

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        if not self._taken:
            self._taken = self._result().take(_TAKEN_AT_A_TIME)[::-1]
        return self._taken.pop() if self._taken else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, `arraysize` unless `size` says how many."""
        size = self.arraysize if size is None else size
        rows = self._rest_of_taken(size)
        if len(rows) < size:
            rows += self._result().take(size - len(rows))
        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._rest_of_taken(len(self._taken)) + self._result().take(2**62)

    def fetch_arrow(self) -> Result:
        """The rows for libraries that know Arrow, without a copy. They are taken by it: fetch nothing before."""
        answer = self._result()
        if self._taken:
            raise errors.InterfaceError(0, "Rows were fetched one by one: fetch_arrow would leave some of them out")
        self._answers.pop()
        return Result(answer)

    def nextset(self) -> bool | None:
        """Go to the next result of a CALL. None if there is no other."""
        self._check()
        if len(self._answers) < 2:
            return None
        self._answers.pop()
        self._taken = []
        self._show_counts()
        return True

    @property
    def warnings(self) -> list[tuple[Any, ...]]:
        """Level, number and text of each warning that the last statement has left."""
        self._check()
        with translated():
            return self.connection._session.execute("show warnings", None)[0].take(2**62)

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """PEP 249 allows to do nothing: parameters bring their sizes."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """PEP 249 allows to do nothing: long values come whole."""

    def close(self) -> None:
        """Drop the result. The cursor cannot be used any more."""
        self._closed = True
        self._answers, self._taken = [], []

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the first rows, or the tree of an EXPLAIN."""
        answer = self._answer()
        return Result(answer)._repr_html_() if answer is not None and answer.has_rows else None

    def _check(self) -> None:
        if self._closed:
            raise errors.InterfaceError(0, "The cursor is closed")

    def _begin(self) -> None:
        self._check()
        self._answers, self._taken = [], []
        self.rowcount, self.lastrowid = -1, None

    def _answer(self) -> Answer | None:
        return self._answers[-1] if self._answers else None

    def _result(self) -> Answer:
        self._check()
        answer = self._answer()
        if answer is None or not answer.has_rows:
            raise errors.ProgrammingError(0, "There is no result: the last statement has none")
        return answer

    def _rest_of_taken(self, size: int) -> list[tuple[Any, ...]]:
        rows = self._taken[::-1][:size]
        del self._taken[len(self._taken) - len(rows) :]
        return rows

    def _show_counts(self) -> None:
        answer = self._answer()
        if answer is not None:
            self.rowcount = len(answer) if answer.has_rows else answer.affected_rows
            self.lastrowid = answer.last_insert_id or None
