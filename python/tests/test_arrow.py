"""Results for libraries of columns."""

from __future__ import annotations

import datetime
import decimal

import pytest

import sheaf

pyarrow = pytest.importorskip("pyarrow")


@pytest.fixture
def orders(shop: sheaf.Connection) -> sheaf.Connection:
    shop.execute(
        "create table orders (id int primary key, price decimal(8,2), note varchar(200), raw varbinary(9),"
        " paid date, at datetime(6), took time, paid_by json, many bigint unsigned, rate double, flag bit(3))"
    )
    long = "a text that is longer than what fits into a view"
    rows = [
        (n, f"{n}.50", None if n % 3 == 0 else f"{long} {n}" if n % 2 else "short", bytes([n % 256]),
         datetime.date(2024, 1, 1) + datetime.timedelta(n % 365), datetime.datetime(2024, 1, 1, 0, 0, 0, n),
         datetime.timedelta(seconds=n), '{"n": %d}' % n, n, n / 2, n % 8)
        for n in range(3000)
    ]
    shop.executemany("insert into orders values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    return shop


def test_all_types_arrive(orders: sheaf.Connection) -> None:
    table = pyarrow.table(orders.execute("select * from orders order by id").fetch_arrow())
    table.validate(full=True)
    assert table.num_rows == 3000
    row = table.slice(1, 1).to_pylist()[0]
    assert row["id"] == 1
    assert row["price"] == decimal.Decimal("1.50")
    assert row["note"] == "a text that is longer than what fits into a view 1"
    assert row["raw"] == b"\x01"
    assert row["paid"] == datetime.date(2024, 1, 2)
    assert row["at"] == datetime.datetime(2024, 1, 1, 0, 0, 0, 1)
    assert row["took"] == datetime.timedelta(seconds=1)
    assert row["paid_by"] == '{"n": 1}'
    assert row["many"] == 1 and row["rate"] == 0.5
    assert table.column("note").null_count == 1000


@pytest.mark.parametrize("where", ["id = 7", "id in (1, 2, 3)", "id = -1", "rate > 100", "1 = 0"])
def test_any_plan_gives_the_same_types(orders: sheaf.Connection, where: str) -> None:
    whole = pyarrow.table(orders.execute("select * from orders").fetch_arrow()).schema
    some = orders.execute(f"select * from orders where {where}")
    rows = some.rowcount
    table = pyarrow.table(some.fetch_arrow())
    table.validate(full=True)
    assert table.num_rows == rows
    assert table.schema == whole


def test_expressions(shop: sheaf.Connection) -> None:
    sql = "select 1 = 1 as yes, null as nothing, 'a' as text, 1.5 as d, true and null as unknown, cast(7 as decimal(65,2)) as wide"
    table = pyarrow.table(shop.execute(sql).fetch_arrow())
    table.validate(full=True)
    row = table.to_pylist()[0]
    assert (int(row["yes"]), row["nothing"], row["text"], row["d"], row["unknown"]) == (
        1, None, "a", decimal.Decimal("1.5"), None,
    )
    assert row["wide"] == 7


def test_rows_that_were_fetched_are_left_out(orders: sheaf.Connection) -> None:
    cursor = orders.execute("select id from orders order by id")
    assert len(cursor.fetchmany(1500)) == 1500
    ids = pyarrow.table(cursor.fetch_arrow()).column("id").to_pylist()
    assert ids == list(range(1500, 3000))
    cursor = orders.execute("select id from orders order by id")
    cursor.fetchone()
    with pytest.raises(sheaf.InterfaceError):
        cursor.fetch_arrow()


def test_a_result_outlives_its_connection(orders: sheaf.Connection) -> None:
    result = orders.execute("select id, note from orders order by id").fetch_arrow()
    orders.close()
    table = pyarrow.table(result)
    del result
    assert table.column("id").to_pylist() == list(range(3000))
    schema = pyarrow.schema(pyarrow.table({"a": [1]}).schema)
    assert schema is not None


def test_a_result_is_taken_twice_or_never(orders: sheaf.Connection) -> None:
    result = orders.execute("select id from orders").fetch_arrow()
    assert pyarrow.table(result) == pyarrow.table(result)
    result.__arrow_c_stream__()
    assert pyarrow.schema(result).names == ["id"]


def test_dates_that_are_none_are_null(shop: sheaf.Connection) -> None:
    shop.execute("set sql_mode = ''")
    shop.execute("create table t (d date, p datetime)")
    shop.execute("insert into t values ('0000-00-00', '0000-00-00 00:00:00'), ('2024-01-01', '2024-01-01 00:00:00')")
    table = pyarrow.table(shop.execute("select * from t order by d").fetch_arrow())
    assert table.column("d").to_pylist() == [None, datetime.date(2024, 1, 1)]
    assert table.column("p").null_count == 1


def test_pandas(orders: sheaf.Connection) -> None:
    pytest.importorskip("pandas")
    frame = orders.execute("select id, rate from orders order by id").fetch_arrow().to_pandas()
    assert len(frame) == 3000 and frame["rate"].sum() == sum(range(3000)) / 2


def test_polars(orders: sheaf.Connection) -> None:
    polars = pytest.importorskip("polars")
    result = orders.execute("select * from orders order by id").fetch_arrow()
    frame = polars.DataFrame(result)
    assert frame.height == 3000 and frame["id"].to_list() == list(range(3000))
    assert polars.DataFrame(result).equals(frame)
