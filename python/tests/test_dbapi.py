"""The interface of PEP 249."""

from __future__ import annotations

import datetime
import decimal
import multiprocessing
import pathlib
import pickle
import signal
import threading

import pytest

import sheaf


def test_module_says_what_it_is() -> None:
    assert (sheaf.apilevel, sheaf.threadsafety, sheaf.paramstyle) == ("2.0", 2, "qmark")


def test_a_directory_is_made_and_found_again(tmp_path: pathlib.Path) -> None:
    with sheaf.connect(tmp_path / "shop") as shop:
        shop.execute("create table t (a int primary key)")
        shop.execute("insert into t values (?)", (7,))
    with sheaf.connect(tmp_path / "shop") as shop:
        assert shop.execute("select a from t").fetchall() == [(7,)]
    with pytest.raises(sheaf.OperationalError) as caught:
        sheaf.connect(tmp_path / "other", create=False)
    assert caught.value.errno == 29
    assert not (tmp_path / "other").exists()


def test_a_database_is_chosen(tmp_path: pathlib.Path) -> None:
    with sheaf.connect(tmp_path / "shop") as shop:
        assert shop.execute("select database()").fetchone() == ("main",)
        shop.execute("create database crm")
        with sheaf.connect(tmp_path / "shop", "crm") as crm:
            assert crm.execute("select database()").fetchone() == ("crm",)
        with pytest.raises(sheaf.ProgrammingError) as caught:
            sheaf.connect(tmp_path / "shop", "nowhere")
        assert caught.value.errno == 1049


TYPES = [
    ("tinyint", -5),
    ("bigint unsigned", 2**64 - 1),
    ("bool", 1),
    ("decimal(38,4)", decimal.Decimal("1234567890123456789012345678901234.5678")),
    ("decimal(65,30)", decimal.Decimal("12345678901234567890123456789012345.123456789012345678901234567890")),
    ("float", 0.1),
    ("double", 1e300),
    ("varchar(20)", "Grüße, 世界 🙂"),
    ("text", "a'b\\c\n"),
    ("varbinary(20)", b"\x00\xff'"),
    ("date", datetime.date(2024, 2, 29)),
    ("datetime(6)", datetime.datetime(2024, 2, 29, 23, 59, 59, 123456)),
    ("timestamp", datetime.datetime(2024, 2, 29, 23, 59, 59)),
    ("time(3)", -datetime.timedelta(hours=100, milliseconds=7)),
    ("year", 2024),
    ("enum('s','m')", "m"),
    ("set('a','b')", "a,b"),
    ("json", '{"a": [1, null]}'),
    ("bit(10)", b"\x02\x01"),
]


@pytest.mark.parametrize(("type_name", "value"), TYPES)
def test_values_come_back(shop: sheaf.Connection, type_name: str, value: object) -> None:
    shop.execute(f"create table t (id int primary key, v {type_name})")
    shop.execute("insert into t values (1, ?), (2, null)", (value,))
    by_key = shop.execute("select v from t where id = ?", (1,)).fetchone()
    by_scan = shop.execute("select v from t order by id").fetchall()
    assert by_key == (value,)
    assert by_scan == [(value,), (None,)]
    assert type(by_scan[0][0]) is type(value)


def test_parameters(shop: sheaf.Connection) -> None:
    class Seven:
        def __index__(self) -> int:
            return 7

    row = shop.execute(
        "select ?, ?, ?, ?, ?, '?' -- ?",
        (True, Seven(), bytearray(b"x"), datetime.time(1, 2, 3), decimal.Decimal("1E+2")),
    ).fetchone()
    assert row is not None
    assert row[:2] == (1, 7)
    assert row[4:] == (100, "?")
    for wrong in [float("nan"), decimal.Decimal("NaN"), object(), [1], datetime.datetime.now(datetime.timezone.utc)]:
        with pytest.raises(sheaf.ProgrammingError):
            shop.execute("select ?", (wrong,))
    for wrong_count in [(1,), (1, 2, 3)]:
        with pytest.raises(sheaf.ProgrammingError) as caught:
            shop.execute("select ?, ?", wrong_count)
        assert caught.value.errno == 1210
    with pytest.raises(sheaf.ProgrammingError):
        shop.execute("select ?", "a")


def test_dates_that_are_none(shop: sheaf.Connection) -> None:
    shop.execute("set sql_mode = ''")
    shop.execute("create table t (d date, p datetime)")
    shop.execute("insert into t values ('0000-00-00', '0000-00-00 00:00:00')")
    cursor = shop.execute("select * from t")
    assert cursor.fetchone() == ("0000-00-00", "0000-00-00 00:00:00")


def test_rows_are_fetched_in_parts(shop: sheaf.Connection) -> None:
    cursor = shop.cursor()
    cursor.execute("create table t (a int primary key)")
    cursor.executemany("insert into t values (?)", [(n,) for n in range(1000)])
    assert cursor.rowcount == 1000
    cursor.execute("select a from t order by a")
    assert cursor.rowcount == 1000
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany() == [(1,)]
    assert cursor.fetchmany(3) == [(2,), (3,), (4,)]
    assert next(iter(cursor)) == (5,)
    assert cursor.fetchmany(500) == [(n,) for n in range(6, 506)]
    assert cursor.fetchall() == [(n,) for n in range(506, 1000)]
    assert cursor.fetchone() is None and cursor.fetchmany(2) == [] and cursor.fetchall() == []


def test_description(shop: sheaf.Connection) -> None:
    cursor = shop.cursor()
    assert cursor.description is None and cursor.rowcount == -1
    cursor.execute("create table t (a int not null, b decimal(8,2), c text, d blob, e date)")
    assert cursor.description is None
    cursor.execute("select * from t")
    description = cursor.description
    assert description is not None
    assert [column[0] for column in description] == ["a", "b", "c", "d", "e"]
    codes = [sheaf.NUMBER, sheaf.NUMBER, sheaf.STRING, sheaf.BINARY, sheaf.DATETIME]
    assert [column[1] for column in description] == codes
    assert description[0][6] is False and description[1][4:] == (8, 2, True)
    with pytest.raises(sheaf.ProgrammingError):
        cursor.execute("do 1").fetchone()


def test_counts(shop: sheaf.Connection) -> None:
    cursor = shop.cursor()
    cursor.execute("create table t (id int auto_increment primary key, a int)")
    cursor.execute("insert into t (a) values (1), (2)")
    assert (cursor.rowcount, cursor.lastrowid) == (2, 1)
    cursor.execute("update t set a = 1")
    assert cursor.rowcount == 2
    cursor.execute("select cast('x' as signed)")
    assert [code for _, code, _ in cursor.warnings] == [1292]


def test_transactions(tmp_path: pathlib.Path) -> None:
    with sheaf.connect(tmp_path / "shop") as one, sheaf.connect(tmp_path / "shop", autocommit=True) as two:
        two.execute("create table t (a int primary key)")
        one.execute("insert into t values (1)")
        assert one.in_transaction and not one.autocommit and two.autocommit
        assert two.execute("select count(*) from t").fetchone() == (0,)
        one.rollback()
        one.execute("insert into t values (2)")
        one.commit()
        assert two.execute("select a from t").fetchall() == [(2,)]
    with pytest.raises(ZeroDivisionError):
        with sheaf.connect(tmp_path / "shop") as one:
            one.execute("insert into t values (3)")
            1 / 0
    with sheaf.connect(tmp_path / "shop") as one:
        assert one.execute("select a from t").fetchall() == [(2,)]


ERRORS = [
    ("insert into t values (1)", sheaf.IntegrityError, 1062, "23000"),
    ("insert into t values (null)", sheaf.IntegrityError, 1048, "23000"),
    ("insert into t values (99999999999)", sheaf.DataError, 1264, "22003"),
    ("select * from nowhere", sheaf.ProgrammingError, 1146, "42S02"),
    ("selec 1", sheaf.ProgrammingError, 1064, "42000"),
    ("select ? + 1", sheaf.ProgrammingError, 1064, "42000"),
    ("select sleep(1000)", sheaf.OperationalError, 3024, "HY000"),
]


@pytest.mark.parametrize(("sql", "kind", "errno", "sqlstate"), ERRORS)
def test_errors(shop: sheaf.Connection, sql: str, kind: type[sheaf.Error], errno: int, sqlstate: str) -> None:
    shop.execute("create table t (a int primary key)")
    shop.execute("insert into t values (1)")
    shop.execute("set max_execution_time = 20")
    with pytest.raises(kind) as caught:
        shop.execute(sql)
    error = caught.value
    assert (error.errno, error.sqlstate) == (errno, sqlstate)
    assert error.args[0] == errno
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.errno, again.sqlstate) == (kind, errno, sqlstate)


def test_statements_are_prepared_anew_after_use_and_set(shop: sheaf.Connection) -> None:
    shop.execute("create table t (a int)")
    shop.execute("insert into t values (1)")
    shop.execute("create database other")
    shop.execute("create table other.t (a int)")
    assert shop.execute("select a from t where a = ?", (1,)).fetchall() == [(1,)]
    shop.execute("use other")
    assert shop.execute("select a from t where a = ?", (1,)).fetchall() == []


def test_threads_share_a_connection(shop: sheaf.Connection) -> None:
    shop.execute("create table t (a int primary key)")

    def insert(first: int) -> None:
        for n in range(first, first + 50):
            shop.execute("insert into t values (?)", (n,))

    threads = [threading.Thread(target=insert, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shop.execute("select count(*) from t").fetchone() == (200,)


def test_a_statement_is_cancelled(shop: sheaf.Connection) -> None:
    shop.execute("set cte_max_recursion_depth = 4294967295")
    failed: list[sheaf.Error] = []

    def run() -> None:
        try:
            shop.execute(ENDLESS)
        except sheaf.Error as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        shop.cancel()
        thread.join(0.01)
    assert [error.errno for error in failed] == [1317]
    assert shop.execute("select 1").fetchone() == (1,)


ENDLESS = "with recursive n as (select 1 as a union all select a + 1 from n) select count(*) from n"


def test_ctrl_c_ends_a_statement(tmp_path: pathlib.Path) -> None:
    shop = sheaf.connect(tmp_path / "shop", interruptible=True)
    shop.execute("set cte_max_recursion_depth = 4294967295")
    presses = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    presses.start()
    with pytest.raises(KeyboardInterrupt):
        shop.execute(ENDLESS)
    presses.join()
    assert shop.execute("select 1").fetchone() == (1,)
    with pytest.raises(sheaf.ProgrammingError):
        shop.execute("selec 1")
    shop.close()


def test_what_is_closed_fails(shop: sheaf.Connection) -> None:
    cursor = shop.cursor()
    cursor.close()
    with pytest.raises(sheaf.InterfaceError):
        cursor.execute("select 1")
    other = shop.cursor()
    shop.close()
    shop.close()
    assert shop.closed
    for use in [shop.commit, shop.rollback, shop.cursor, lambda: other.execute("select 1")]:
        with pytest.raises(sheaf.OperationalError) as caught:
            use()
        assert caught.value.errno == 1053


def _use(shop: sheaf.Connection, answers: "multiprocessing.SimpleQueue[int]") -> None:
    try:
        shop.execute("select 1")
    except sheaf.Error as error:
        answers.put(error.errno)


def test_a_child_of_fork_leaves_the_database_alone(shop: sheaf.Connection) -> None:
    shop.execute("create table t (a int primary key)")
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_use, args=(shop, answers))
    child.start()
    child.join(60)
    assert child.exitcode == 0 and answers.get() == 1053
    shop.execute("insert into t values (1)")
    assert shop.execute("select a from t").fetchall() == [(1,)]


def test_options_are_those_of_the_first_connection(tmp_path: pathlib.Path) -> None:
    with sheaf.connect(tmp_path / "shop", memory_bytes=64 << 20):
        with sheaf.connect(tmp_path / "shop"):
            pass
        with pytest.raises(sheaf.ProgrammingError) as caught:
            sheaf.connect(tmp_path / "shop", memory_bytes=128 << 20)
        assert caught.value.errno == 1210
