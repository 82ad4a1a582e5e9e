"""SQLAlchemy over a directory."""

from __future__ import annotations

import datetime
import decimal
import pathlib

import pytest

pytest.importorskip("sqlalchemy")

from sqlalchemy import JSON, ForeignKey, Numeric, String, create_engine, exc, func, inspect, select, text, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(40), unique=True)
    orders: Mapped[list["Order"]] = relationship(back_populates="customer")


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customers.id"))
    price: Mapped[decimal.Decimal] = mapped_column(Numeric(8, 2))
    at: Mapped[datetime.datetime]
    extra: Mapped[dict] = mapped_column(JSON)
    customer: Mapped[Customer] = relationship(back_populates="orders")


def test_orm(tmp_path: pathlib.Path) -> None:
    engine = create_engine(f"sheaf:///{tmp_path}/shop?memory_bytes={64 << 20}")
    Base.metadata.create_all(engine)
    at = datetime.datetime(2024, 1, 2, 3, 4, 5)
    with Session(engine) as session:
        ada = Customer(name="Ada 100%")
        ada.orders = [Order(price=decimal.Decimal(n), at=at, extra={"n": [n]}) for n in (5, 70)]
        session.add(ada)
        session.commit()
        assert ada.id == 1
    with Session(engine) as session:
        found = session.scalars(select(Customer).where(Customer.name.like("%100\\%%"))).one()
        assert [order.extra for order in found.orders] == [{"n": [5]}, {"n": [70]}]
        assert found.orders[0].at == at
        session.execute(update(Order).values(price=Order.price * 2))
        assert session.scalar(select(func.sum(Order.price))) == decimal.Decimal("150.00")
        assert session.scalars(select(Order.price).order_by(Order.id).limit(1).offset(1)).one() == 140
        session.rollback()
        session.add(Customer(name="Ada 100%"))
        with pytest.raises(exc.IntegrityError):
            session.commit()
    shape = inspect(engine)
    assert sorted(shape.get_table_names()) == ["customers", "orders"]
    assert [column["name"] for column in shape.get_columns("orders")] == ["id", "customer_id", "price", "at", "extra"]
    assert shape.get_foreign_keys("orders")[0]["referred_table"] == "customers"
    Base.metadata.drop_all(engine)
    engine.dispose()


def test_text_and_isolation(tmp_path: pathlib.Path) -> None:
    engine = create_engine(f"sheaf:///{tmp_path}/shop", isolation_level="READ COMMITTED")
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED"
        assert connection.execute(text("select :a + 1"), {"a": 41}).scalar() == 42
    engine.dispose()
