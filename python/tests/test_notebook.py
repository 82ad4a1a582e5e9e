"""What notebooks show."""

from __future__ import annotations

import sheaf
from sheaf.result import plan_as_html


def test_rows(shop: sheaf.Connection) -> None:
    cursor = shop.execute("select '<b>' as `a&b`, null as n")
    shown = cursor._repr_html_()
    assert shown is not None
    assert "<th>a&amp;b</th>" in shown and "<td>&lt;b&gt;</td><td><em>NULL</em></td>" in shown
    assert cursor.fetchall() == [("<b>", None)]
    assert shop.execute("do 1")._repr_html_() is None


def test_long_results_are_cut(shop: sheaf.Connection) -> None:
    cursor = shop.execute("with recursive n as (select 1 as a union all select a + 1 from n where a < 50) select a from n")
    shown = cursor._repr_html_()
    assert shown is not None and "<p>20 of 50 rows</p>" in shown and shown.count("<tr>") == 21


def test_a_plan_is_a_tree(shop: sheaf.Connection) -> None:
    shop.execute("create table t (a int primary key, b int)")
    shown = shop.execute("explain format=tree select b, count(*) from t group by b order by 2")._repr_html_()
    assert shown is not None and "<details open" in shown
    assert shown.count("<details") == shown.count("</details>")


def test_branches_nest() -> None:
    html = plan_as_html("-> Join\n    -> Scan a\n       note\n    -> Filter\n        -> Scan b\n-> Other")
    assert html.count("<details") == 2 and "Scan a<br>note" in html
    assert html.index("Scan b") < html.rindex("</details>") < html.index("Other")
