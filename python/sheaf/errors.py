"""Errors as PEP 249 sorts them, each with MySQL's number and SQLSTATE.

Which class an error has follows from its SQLSTATE, which is what the SQL standard made it for. A few numbers stand
beside that, where MySQL has given errors the state HY000, "something else".
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

from ._sheaf import EngineError


class Warning(Exception):
    """Warnings of PEP 249. Sheaf's own are rows: `Cursor.warnings`."""


class Error(Exception):
    """Any error. `args` are the number and the text, as those of MySQL's drivers."""

    def __init__(self, errno: int = 0, message: str = "", sqlstate: str = "HY000") -> None:
        super().__init__(errno, message)
        #: MySQL's number, such as 1062.
        self.errno = errno
        #: Five characters, such as "23000".
        self.sqlstate = sqlstate
        #: The text.
        self.message = message

    def __str__(self) -> str:
        return f"{self.errno} ({self.sqlstate}): {self.message}"

    def __reduce__(self) -> tuple[type[Error], tuple[int, str, str]]:
        return type(self), (self.errno, self.message, self.sqlstate)


class InterfaceError(Error):
    """A call that the interface does not have a meaning for."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value that does not fit, such as a date that is none."""


class OperationalError(DatabaseError):
    """What happens to a correct program: deadlocks, timeouts, a full disk, missing rights."""


class IntegrityError(DatabaseError):
    """Rows that keys, foreign keys, NOT NULL or CHECK do not allow."""


class InternalError(DatabaseError):
    """A fault of Sheaf."""


class ProgrammingError(DatabaseError):
    """A statement or call that is wrong, such as one of a table that is not there."""


class NotSupportedError(DatabaseError):
    """What MySQL has and Sheaf does not."""


_BY_NUMBER: dict[int, type[Error]] = {
    1044: OperationalError,
    1045: OperationalError,
    1105: InternalError,
    1142: OperationalError,
    1143: OperationalError,
    1210: ProgrammingError,
    1227: OperationalError,
    1235: NotSupportedError,
    1295: NotSupportedError,
    1364: IntegrityError,
    3819: IntegrityError,
}

_BY_CLASS: dict[str, type[Error]] = {
    "0A": NotSupportedError,
    "21": ProgrammingError,
    "22": DataError,
    "23": IntegrityError,
    "42": ProgrammingError,
    "44": IntegrityError,
}


def class_of(errno: int, sqlstate: str) -> type[Error]:
    """The class of an error."""
    return _BY_NUMBER.get(errno) or _BY_CLASS.get(sqlstate[:2], OperationalError)


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the engine leave the block as those of PEP 249."""
    try:
        yield
    except EngineError as error:
        errno, sqlstate, message = error.args
        raise class_of(errno, sqlstate)(errno, message, sqlstate) from None
