"""Sheaf inside a Python program: a relational database without a server.

    import sheaf

    with sheaf.connect("shop") as shop:
        shop.execute("create table if not exists orders (id int primary key, price decimal(8,2))")
        shop.execute("insert into orders values (?, ?)", (1, 9.5))

`connect` opens a directory, and the rest is the DB-API 2.0 (PEP 249), with MySQL's dialect of SQL. Results are Arrow
as well: `polars.DataFrame(cursor.fetch_arrow())`.
"""

from __future__ import annotations

import datetime
import os
import time

from ._sheaf import __version__
from .connection import Connection
from .cursor import Cursor
from .errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from .result import Result

#: The version of PEP 249.
apilevel = "2.0"
#: Threads may share the module and its connections. Statements of one connection run one after the other, in one
#: transaction: threads that are to work beside each other take a connection each.
threadsafety = 2
#: A parameter is a question mark.
paramstyle = "qmark"


class _TypeCodes(frozenset[int]):
    """Equal to each of its codes, as PEP 249 wants it of type objects."""

    def __eq__(self, other: object) -> bool:
        return other in self if isinstance(other, int) else frozenset.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = frozenset.__hash__


#: Codes of `Cursor.description`: texts, ENUM, SET, JSON.
STRING = _TypeCodes({15, 245, 247, 248, 253, 254})
#: Bytes, BIT.
BINARY = _TypeCodes({16, 249, 250, 251, 252})
#: Numbers, YEAR.
NUMBER = _TypeCodes({0, 1, 2, 3, 4, 5, 8, 9, 13, 246})
#: DATE, TIME, DATETIME, TIMESTAMP.
DATETIME = _TypeCodes({7, 10, 11, 12})
#: Sheaf shows no numbers of rows.
ROWID = _TypeCodes()

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a point in time, in seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a point in time."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local date and time of a point in time."""
    return Timestamp(*time.localtime(ticks)[:6])


def connect(
    path: str | os.PathLike[str],
    database: str | None = None,
    *,
    autocommit: bool = False,
    create: bool = True,
    memory_bytes: int | None = None,
    threads: int | None = None,
    interruptible: bool | None = None,
) -> Connection:
    """Open the database in a directory.

    path          the directory; it is made when there is none, unless `create` is False
    database      the current database of SQL. A new directory gets one that is called `main`, and that is what is
                  taken when none is named
    autocommit    whether each statement is a transaction of its own
    memory_bytes  what the engine may use, together
    threads       of large queries; by default one for each core
    interruptible whether Ctrl-C ends a statement, which costs each some 20 microseconds; by default in notebooks and
                  at Python's prompt

    Connections of one process to one directory share one engine, whose memory and threads are those that the first
    of them asked for. Another process, such as a server, cannot open the directory meanwhile.
    """
    return Connection(path, database, autocommit, create, memory_bytes, threads, interruptible)


__all__ = [
    "BINARY",
    "Binary",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "ROWID",
    "Result",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
