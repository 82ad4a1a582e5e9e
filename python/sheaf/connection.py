"""A connection: a session of its own, with its own transaction."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from typing import Any, Sequence

from . import _sheaf, errors
from .cursor import Cursor
from .errors import translated

#: What is open when the program ends is closed then, so that the next start has nothing to recover.
_open: weakref.WeakSet[Connection] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for connection in list(_open):
        connection.close()


def _is_interactive() -> bool:
    """Whether somebody sits there who may press Ctrl-C: a notebook, or Python's own prompt."""
    return bool(sys.flags.interactive) or hasattr(sys, "ps1") or "ipykernel" in sys.modules


class Connection:
    """Made by `sheaf.connect`. As a context manager it commits, or rolls back after an exception, and closes."""

    # PEP 249: the errors, for programs with several modules of databases.
    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self,
        path: str | os.PathLike[str],
        database: str | None = None,
        autocommit: bool = False,
        create: bool = True,
        memory_bytes: int | None = None,
        threads: int | None = None,
        interruptible: bool | None = None,
    ) -> None:
        if interruptible is None:
            interruptible = _is_interactive()
        with translated():
            self._session = _sheaf.Connection(
                os.fspath(path), database, create, memory_bytes, threads, interruptible
            )
        _open.add(self)
        if not autocommit:
            self.autocommit = False

    def cursor(self) -> Cursor:
        """What statements are run with."""
        if self._session.closed:
            raise errors.OperationalError(1053, "The connection is closed", "08S01")
        return Cursor(self)

    def execute(self, sql: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """Run a statement with a new cursor, and return that."""
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> Cursor:
        """Run a statement for each row of parameters, with a new cursor."""
        return self.cursor().executemany(sql, rows)

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        with translated():
            return self._session.status()[1]

    @autocommit.setter
    def autocommit(self, on: bool) -> None:
        with translated():
            self._session.execute(f"set autocommit = {int(on)}", None)

    @property
    def in_transaction(self) -> bool:
        """Whether there is anything to commit or roll back."""
        with translated():
            return self._session.status()[0]

    def commit(self) -> None:
        """Keep what the transaction has changed."""
        with translated():
            self._session.execute("commit", None)

    def rollback(self) -> None:
        """Undo what the transaction has changed."""
        with translated():
            self._session.execute("rollback", None)

    def cancel(self) -> None:
        """End the statement that another thread runs with this connection: it fails with error 1317."""
        self._session.cancel()

    @property
    def closed(self) -> bool:
        return self._session.closed

    def close(self) -> None:
        """Roll back what was not committed, and close. The last connection to a directory closes the database."""
        self._session.close()
        _open.discard(self)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if not self.closed:
                self.rollback() if kind else self.commit()
        finally:
            self.close()
