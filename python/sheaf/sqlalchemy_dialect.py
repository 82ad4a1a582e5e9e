"""SQLAlchemy over a directory: `create_engine("sheaf:///shop")`.

The path is relative after three slashes, and absolute after four. `?database=` names the current database of SQL;
`memory_bytes` and `threads` are those of `sheaf.connect`. The dialect is SQLAlchemy's own of MySQL, so that types,
reflection and compiled statements are what they are there.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import util
from sqlalchemy.dialects.mysql.base import MySQLDialect
from sqlalchemy.engine import URL


class SheafDialect(MySQLDialect):
    """The dialect of MySQL over a connection in the process."""

    driver = "sheaf"
    default_paramstyle = "qmark"
    supports_statement_cache = True
    # UPDATE counts the rows that it has found.
    supports_sane_rowcount = True
    # One count of executemany.
    supports_sane_multi_rowcount = False
    supports_native_decimal = True

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import sheaf

        return sheaf

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        options: dict[str, Any] = dict(url.query)
        for name in ("memory_bytes", "threads"):
            util.coerce_kw_type(options, name, int)
        util.coerce_kw_type(options, "create", bool)
        return [url.database or "."], options

    def _extract_error_code(self, exception: Any) -> int | None:
        return getattr(exception, "errno", None)

    def _detect_charset(self, connection: Any) -> str:
        return "utf8mb4"

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return getattr(e, "errno", None) == 1053

    def do_ping(self, dbapi_connection: Any) -> bool:
        dbapi_connection.execute("select 1")
        return True
