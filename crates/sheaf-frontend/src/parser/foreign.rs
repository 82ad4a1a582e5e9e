//! Clauses that sqlparser reads and MySQL does not have: they are refused, so that none is accepted and ignored.
//!
//! sqlparser reads the grammars of many databases at once. What only others have lands in fields of the syntax tree
//! that nothing behind the parser looks at: `DELETE FROM t PARTITION (p0)` would delete all rows, and `ORDER BY a NULLS
//! LAST` would be `ORDER BY a`. So each part of a tree is taken apart here, with all of its fields by name. A field
//! that a new version of sqlparser brings does not compile until it is decided what becomes of it.

use std::ops::ControlFlow;

use sheaf_types::error::codes;
use sqlparser::ast::{
    self, BinaryOperator, CastKind, CeilFloorKind, DataType, DateTimeField, DuplicateTreatment,
    Expr, FunctionArg, FunctionArgumentClause, FunctionArguments, GroupByExpr, GroupByWithModifier,
    Join, LimitClause, ObjectName, OffsetRows, OrderBy, OrderByExpr, OrderByKind, OrderByOptions,
    Query, Select, SelectFlavor, SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
    TimezoneInfo, WindowSpec, WindowType,
};

use super::{ParseResult, StatementParser};
use crate::error::SqlError;
use crate::syntax::{aggregate_name, object_text};
use crate::walk::{ExpressionVisitor, walk_expression, walk_insert, walk_query, walk_tables};

impl StatementParser<'_> {
    /// Refuses what stands in an expression and is not MySQL's.
    pub(super) fn native_expression(&self, mut expression: Expr) -> ParseResult<Expr> {
        let mut found = Foreign::default();
        walk_expression(&mut expression, &mut found);
        found.refused()?;
        Ok(expression)
    }

    /// As [`Self::native_expression`], for a query.
    pub(super) fn native_query(&self, mut query: Box<Query>) -> ParseResult<Box<Query>> {
        let mut found = Foreign::default();
        walk_query(&mut query, &mut found);
        found.refused()?;
        Ok(query)
    }

    /// For one of WITH.
    pub(super) fn native_common_table(&self, mut table: ast::Cte) -> ParseResult<ast::Cte> {
        let mut found = Foreign::default();
        found.common_table(&table);
        walk_query(&mut table.query, &mut found);
        found.refused()?;
        Ok(table)
    }

    /// For a table of UPDATE or DELETE, with its joins.
    pub(super) fn native_table(&self, table: TableWithJoins) -> ParseResult<TableWithJoins> {
        let mut found = Foreign::default();
        found.joins(&table.joins);
        let mut tables = [table];
        walk_tables(&mut tables, &mut found);
        found.refused()?;
        let [table] = tables;
        Ok(table)
    }

    /// For ORDER BY of UPDATE and DELETE.
    pub(super) fn native_order(&self, mut order: OrderByExpr) -> ParseResult<OrderByExpr> {
        let mut found = Foreign::default();
        found.order(std::slice::from_ref(&order));
        walk_expression(&mut order.expr, &mut found);
        found.refused()?;
        Ok(order)
    }

    /// For an item of RETURNING.
    pub(super) fn native_item(&self, mut item: SelectItem) -> ParseResult<SelectItem> {
        let mut found = Foreign::default();
        found.items(std::slice::from_ref(&item));
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = &mut item {
            walk_expression(expr, &mut found);
        }
        found.refused()?;
        Ok(item)
    }

    /// For INSERT and REPLACE.
    pub(super) fn native_insert(&self, mut insert: ast::Insert) -> ParseResult<ast::Insert> {
        let mut found = Foreign::default();
        found.insert(&insert);
        walk_insert(&mut insert, &mut found);
        found.refused()?;
        Ok(insert)
    }
}

/// The first thing that is not MySQL's.
#[derive(Default)]
struct Foreign {
    first: Option<SqlError>,
}

impl ExpressionVisitor for Foreign {
    fn enter_query(&mut self, query: &Query) {
        self.query(query);
    }

    fn enter_select(&mut self, select: &Select) {
        self.select(select);
    }

    fn enter_table(&mut self, table: &TableFactor) {
        self.table(table);
    }

    fn enter_expression(&mut self, expression: &Expr) {
        self.expression(expression);
    }

    /// `((1, 2))` is the row `(1, 2)`.
    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if let Expr::Nested(inner) = expression
            && matches!(**inner, Expr::Tuple(_))
        {
            *expression = std::mem::replace(inner.as_mut(), Expr::Tuple(Vec::new()));
        }
        match self.first {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

impl Foreign {
    fn refused(self) -> Result<(), SqlError> {
        self.first.map_or(Ok(()), Err)
    }

    fn add(&mut self, error: impl FnOnce() -> SqlError) {
        self.first.get_or_insert_with(error);
    }

    /// Error 1064 at a word, if it has been written.
    fn refuse(&mut self, is_written: bool, word: &str) {
        if is_written {
            self.add(|| SqlError::parse_error(word, 1));
        }
    }

    fn query(&mut self, query: &Query) {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        self.refuse(fetch.is_some(), "FETCH");
        self.refuse(for_clause.is_some(), "FOR");
        self.refuse(settings.is_some(), "SETTINGS");
        self.refuse(format_clause.is_some(), "FORMAT");
        self.refuse(!pipe_operators.is_empty(), "|>");
        for table in with.iter().flat_map(|with| &with.cte_tables) {
            self.common_table(table);
        }
        if let SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) =
            body.as_ref()
        {
            self.add(|| SqlError::parse_error(&body.to_string(), 1));
        }
        if let Some(OrderBy { kind, interpolate }) = order_by {
            self.refuse(interpolate.is_some(), "INTERPOLATE");
            match kind {
                OrderByKind::Expressions(order) => self.order(order),
                OrderByKind::All(_) => self.refuse(true, "ALL"),
            }
        }
        match limit_clause {
            Some(LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) => {
                let offset = offset.as_ref();
                self.refuse(limit.is_none() && offset.is_some(), "OFFSET");
                let rows = offset.is_some_and(|offset| offset.rows != OffsetRows::None);
                self.refuse(rows, "ROWS");
                self.refuse(!limit_by.is_empty(), "BY");
            }
            Some(LimitClause::OffsetCommaLimit {
                offset: _,
                limit: _,
            })
            | None => {}
        }
        let locks_all = locks.iter().any(|lock| lock.of.is_none());
        self.refuse(locks_all && locks.len() > 1, "FOR");
    }

    fn common_table(&mut self, table: &ast::Cte) {
        let ast::Cte {
            alias,
            query: _,
            from,
            materialized,
            closing_paren_token: _,
        } = table;
        self.alias(Some(alias));
        self.refuse(from.is_some(), "FROM");
        self.refuse(materialized.is_some(), "MATERIALIZED");
    }

    fn select(&mut self, select: &Select) {
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct,
            select_modifiers: _,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection: _,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        self.refuse(matches!(distinct, Some(ast::Distinct::On(_))), "ON");
        self.refuse(top.is_some(), "TOP");
        self.items(projection);
        self.refuse(exclude.is_some(), "EXCLUDE");
        self.refuse(into.is_some(), "INTO");
        for table in from {
            self.joins(&table.joins);
        }
        self.refuse(!lateral_views.is_empty(), "LATERAL");
        self.refuse(prewhere.is_some(), "PREWHERE");
        self.refuse(!connect_by.is_empty(), "CONNECT");
        match group_by {
            GroupByExpr::All(_) => self.refuse(true, "ALL"),
            GroupByExpr::Expressions(_, modifiers) => {
                let is_rollup = |one: &GroupByWithModifier| *one == GroupByWithModifier::Rollup;
                self.refuse(!modifiers.iter().all(is_rollup), "WITH");
            }
        }
        self.refuse(!cluster_by.is_empty(), "CLUSTER");
        self.refuse(!distribute_by.is_empty(), "DISTRIBUTE");
        self.refuse(!sort_by.is_empty(), "SORT");
        for ast::NamedWindowDefinition(_, window) in named_window {
            match window {
                ast::NamedWindowExpr::NamedWindow(name) => self.refuse(true, &name.value),
                ast::NamedWindowExpr::WindowSpec(window) => self.window(window),
            }
        }
        self.refuse(qualify.is_some(), "QUALIFY");
        self.refuse(value_table_mode.is_some(), "AS");
        self.refuse(*flavor != SelectFlavor::Standard, "FROM");
    }

    fn items(&mut self, items: &[SelectItem]) {
        for (position, item) in items.iter().enumerate() {
            match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, alias: _ } => {
                    if let Expr::Identifier(name) = expr
                        && name.quote_style.is_none()
                        && is_clause(&name.value)
                    {
                        self.refuse(true, &name.value);
                    }
                }
                SelectItem::ExprWithAliases {
                    expr: _,
                    aliases: _,
                } => self.refuse(true, "("),
                SelectItem::QualifiedWildcard(_, options) | SelectItem::Wildcard(options) => {
                    let is_all = matches!(item, SelectItem::Wildcard(_));
                    self.refuse(is_all && position > 0, "*");
                    let word = wildcard_option(options);
                    self.refuse(word.is_some(), word.unwrap_or_default());
                }
            }
        }
    }

    fn joins(&mut self, joins: &[Join]) {
        for join in joins {
            let Join {
                relation: _,
                global,
                join_operator: _,
            } = join;
            self.refuse(*global, "GLOBAL");
        }
    }

    fn table(&mut self, table: &TableFactor) {
        match table {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints: _,
            } => {
                if let Some(word) = word_of_no_table(name) {
                    self.refuse(true, word);
                }
                self.alias(alias.as_ref());
                self.refuse(args.is_some(), "(");
                self.refuse(!with_hints.is_empty() || *with_ordinality, "WITH");
                self.refuse(version.is_some(), "FOR");
                if !partitions.is_empty() {
                    self.add(not_partitioned);
                }
                self.refuse(json_path.is_some(), "[");
                self.refuse(sample.is_some(), "TABLESAMPLE");
            }
            TableFactor::Derived {
                lateral: _,
                subquery: _,
                alias,
                sample,
            } => {
                self.alias(alias.as_ref());
                self.refuse(sample.is_some(), "TABLESAMPLE");
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                let alias = alias.as_ref().map(|alias| alias.name.value.as_str());
                self.refuse(alias.is_some(), alias.unwrap_or_default());
                self.joins(&table_with_joins.joins);
            }
            TableFactor::JsonTable {
                json_expr: _,
                json_path: _,
                columns: _,
                alias,
            } => {
                self.alias(alias.as_ref());
                let names = alias
                    .as_ref()
                    .is_some_and(|alias| !alias.columns.is_empty());
                self.refuse(names, "(");
            }
            // The binder knows no others.
            _ => {}
        }
    }

    fn alias(&mut self, alias: Option<&TableAlias>) {
        let Some(alias) = alias else {
            return;
        };
        let TableAlias {
            explicit: _,
            name: _,
            columns,
            at,
        } = alias;
        self.refuse(at.is_some(), "AT");
        for ast::TableAliasColumnDef { name: _, data_type } in columns {
            if let Some(data_type) = data_type {
                self.refuse(true, &data_type.to_string());
            }
        }
    }

    fn order(&mut self, order: &[OrderByExpr]) {
        for key in order {
            let OrderByExpr {
                expr: _,
                options:
                    OrderByOptions {
                        asc: _,
                        nulls_first,
                    },
                with_fill,
            } = key;
            self.refuse(nulls_first.is_some(), "NULLS");
            self.refuse(with_fill.is_some(), "WITH");
        }
    }

    fn window(&mut self, window: &WindowSpec) {
        let WindowSpec {
            window_name: _,
            partition_by: _,
            order_by,
            window_frame: _,
        } = window;
        self.order(order_by);
    }

    fn insert(&mut self, insert: &ast::Insert) {
        let ast::Insert {
            insert_token: _,
            optimizer_hints: _,
            or,
            ignore: _,
            into: _,
            table,
            table_alias,
            columns,
            overwrite,
            source: _,
            assignments,
            partitioned,
            after_columns,
            has_table_keyword,
            on,
            returning,
            output,
            replace_into: _,
            priority: _,
            insert_alias: _,
            settings,
            format_clause,
            multi_table_insert_type,
            multi_table_into_clauses,
            multi_table_when_clauses,
            multi_table_else_clause,
        } = insert;
        self.refuse(or.is_some(), "OR");
        self.refuse(!matches!(table, ast::TableObject::TableName(_)), "(");
        if let ast::TableObject::TableName(table) = table {
            let on = match on {
                Some(ast::OnInsert::DuplicateKeyUpdate(assignments)) => assignments.as_slice(),
                _ => &[],
            };
            let assigned = assignments.iter().chain(on).map(|one| &one.target);
            let assigned = assigned.filter_map(|target| match target {
                ast::AssignmentTarget::ColumnName(name) => Some(name),
                ast::AssignmentTarget::Tuple(_) => None,
            });
            for column in columns.iter().chain(assigned) {
                if !is_column_of(table, column) {
                    self.add(|| SqlError::bad_field(&object_text(column), "field list"));
                }
            }
        }
        self.refuse(table_alias.is_some(), "AS");
        self.refuse(*overwrite, "OVERWRITE");
        if partitioned.is_some() {
            self.add(not_partitioned);
        }
        self.refuse(!after_columns.is_empty(), "(");
        self.refuse(*has_table_keyword, "TABLE");
        self.items(returning.as_deref().unwrap_or_default());
        self.refuse(output.is_some(), "OUTPUT");
        self.refuse(settings.is_some(), "SETTINGS");
        self.refuse(format_clause.is_some(), "FORMAT");
        let is_multi_table = multi_table_insert_type.is_some()
            || !multi_table_into_clauses.is_empty()
            || !multi_table_when_clauses.is_empty()
            || multi_table_else_clause.is_some();
        self.refuse(is_multi_table, "ALL");
    }

    /// Those that the binder takes, where they have more fields than it looks at. It refuses all others.
    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Function(function) => self.function(function),
            Expr::Value(value) => match &value.value {
                // Those of prepared statements have numbers.
                ast::Value::Placeholder(name) if !name.starts_with('?') => self.refuse(true, name),
                _ => {}
            },
            Expr::BinaryOp {
                left,
                op: op @ (BinaryOperator::Arrow | BinaryOperator::LongArrow),
                right,
            } => self.refuse(!is_column_with_path(left, right), &format!("{op} {right}")),
            Expr::Like { any, .. } => self.refuse(*any, "ANY"),
            Expr::Convert {
                is_try,
                expr: _,
                data_type: _,
                charset: _,
                target_before_value,
                styles,
            } => {
                self.refuse(*is_try || *target_before_value, "CONVERT");
                self.refuse(!styles.is_empty(), ",");
            }
            Expr::Cast {
                kind,
                expr: _,
                data_type: _,
                array,
                format,
            } => {
                self.refuse(*kind != CastKind::Cast, "CAST");
                if *array {
                    self.add(|| SqlError::not_supported_yet("CAST( .. AS .. ARRAY)"));
                }
                self.refuse(format.is_some(), "FORMAT");
            }
            Expr::Ceil { expr: _, field } | Expr::Floor { expr: _, field } => match field {
                CeilFloorKind::DateTimeField(DateTimeField::NoDateTime) => {}
                CeilFloorKind::DateTimeField(_) => self.refuse(true, "TO"),
                CeilFloorKind::Scale(_) => self.refuse(true, ","),
            },
            Expr::Trim {
                trim_where: _,
                trim_what: _,
                expr: _,
                trim_characters,
            } => self.refuse(trim_characters.is_some(), ","),
            Expr::Substring {
                expr: _,
                substring_from,
                substring_for: _,
                special: _,
                shorthand: _,
            } => self.refuse(substring_from.is_none(), "FOR"),
            Expr::TypedString(ast::TypedString {
                data_type,
                value: _,
                uses_odbc_syntax: _,
            }) => {
                let is_known = matches!(
                    data_type,
                    DataType::Date
                        | DataType::Time(None, TimezoneInfo::None)
                        | DataType::Timestamp(None, TimezoneInfo::None)
                );
                if !is_known {
                    self.refuse(true, &data_type.to_string());
                }
            }
            Expr::Interval(ast::Interval {
                value: _,
                leading_field: _,
                leading_precision,
                last_field,
                fractional_seconds_precision,
            }) => {
                let has_precision =
                    leading_precision.is_some() || fractional_seconds_precision.is_some();
                self.refuse(has_precision, "(");
                self.refuse(last_field.is_some(), "TO");
            }
            _ => {}
        }
    }

    fn function(&mut self, function: &ast::Function) {
        let ast::Function {
            name,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        self.refuse(!matches!(parameters, FunctionArguments::None), "(");
        self.refuse(filter.is_some(), "FILTER");
        self.refuse(null_treatment.is_some() && over.is_none(), "NULLS");
        self.refuse(!within_group.is_empty(), "WITHIN");
        if let Some(WindowType::WindowSpec(window)) = over {
            self.window(window);
        }
        let FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment,
            args,
            clauses,
        }) = args
        else {
            return;
        };
        if let Some(treatment) = duplicate_treatment {
            let name = object_text(name).to_ascii_lowercase();
            let is_all = *treatment == DuplicateTreatment::All;
            self.refuse(is_all && aggregate_name(&name).is_none(), "ALL");
        }
        let is_named = |arg: &FunctionArg| !matches!(arg, FunctionArg::Unnamed(_));
        self.refuse(args.iter().any(is_named), "=>");
        if clauses.is_empty() {
            return;
        }
        let lists = object_text(name).eq_ignore_ascii_case("group_concat");
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(order) => {
                    self.refuse(!lists, "ORDER");
                    self.order(order);
                }
                FunctionArgumentClause::Separator(_) => self.refuse(!lists, "SEPARATOR"),
                other => self.refuse(true, &other.to_string()),
            }
        }
    }
}

/// Whether `left -> right` is what it has to be: a column and a path.
fn is_column_with_path(left: &Expr, right: &Expr) -> bool {
    let is_column = match left {
        Expr::Identifier(name) => name.quote_style.is_some() || !name.value.starts_with('@'),
        Expr::CompoundIdentifier(_) => true,
        _ => false,
    };
    let path = match right {
        Expr::Value(path) => Some(&path.value),
        _ => None,
    };
    is_column
        && matches!(
            path,
            Some(ast::Value::SingleQuotedString(_) | ast::Value::DoubleQuotedString(_))
        )
}

/// Whether a column that INSERT changes is written as one of its table: `b`, `t.b` or `d.t.b`.
fn is_column_of(table: &ObjectName, column: &ObjectName) -> bool {
    let parts = |name: &ObjectName| -> Vec<String> {
        let parts = name.0.iter().filter_map(|part| part.as_ident());
        parts.map(|part| part.value.clone()).rev().collect()
    };
    let (table, column) = (parts(table), parts(column));
    let mut pairs = column.iter().skip(1).zip(&table);
    pairs.all(|(qualifier, name)| qualifier == name)
}

/// 1747: tables have no partitions.
pub fn not_partitioned() -> SqlError {
    SqlError::new(
        codes::PARTITION_CLAUSE_ON_NONPARTITIONED,
        "PARTITION () clause on non partitioned table",
    )
}

/// The first word behind a `*` that MySQL does not know there.
pub fn wildcard_option(options: &ast::WildcardAdditionalOptions) -> Option<&'static str> {
    let ast::WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    let words = [
        (opt_ilike.is_some(), "ILIKE"),
        (opt_exclude.is_some(), "EXCLUDE"),
        (opt_except.is_some(), "EXCEPT"),
        (opt_replace.is_some(), "REPLACE"),
        (opt_rename.is_some(), "RENAME"),
        (opt_alias.is_some(), "AS"),
    ];
    let mut written = words.into_iter().filter(|(is_written, _)| *is_written);
    written.next().map(|(_, word)| word)
}

/// Words that begin a clause or a statement, which sqlparser takes for names in a select list.
fn is_clause(word: &str) -> bool {
    const CLAUSES: [&str; 14] = [
        "select", "from", "where", "group", "order", "having", "limit", "into", "union", "join",
        "insert", "update", "delete", "set",
    ];
    CLAUSES
        .iter()
        .any(|clause| clause.eq_ignore_ascii_case(word))
}

/// What stands in place of a table and cannot be its name: a variable, or a word that begins what should come later.
/// sqlparser takes any word.
fn word_of_no_table(name: &ast::ObjectName) -> Option<&str> {
    const WORDS: [&str; 16] = [
        "AND", "BY", "FROM", "GROUP", "HAVING", "INTO", "LIMIT", "NULL", "ON", "OR", "ORDER",
        "SELECT", "SET", "UNION", "USING", "WHERE",
    ];
    let first = name.0.first()?.as_ident()?;
    let is_word = |word: &&str| first.value.eq_ignore_ascii_case(word);
    let is_wrong = first.value.starts_with('@') || WORDS.iter().any(is_word);
    (first.quote_style.is_none() && is_wrong).then_some(first.value.as_str())
}

#[cfg(test)]
mod tests {
    use crate::dialect::SheafDialect;
    use crate::parser::parse_statement;

    fn code_of(text: &str) -> u16 {
        match parse_statement(text, &SheafDialect::default()) {
            Ok(_) => 0,
            Err(error) => error.code,
        }
    }

    #[test]
    fn clauses_of_others_are_refused() {
        let refused = [
            "select id from t connect by prior id = a",
            "select id from t cluster by a",
            "select id from t distribute by a",
            "select id from t sort by a",
            "select id from t (nolock)",
            "select id from t with (nolock)",
            "select id from t with ordinality",
            "select id from t tablesample (10 rows)",
            "select id from t, (select 1) q tablesample (10)",
            "select * from (t join u using (id)) as q",
            "select * from t global join u on t.id = u.id",
            "select * from (t global join u on t.id = u.id)",
            "select id from t order by a nulls last",
            "select sum(a) over (order by a nulls first) from t",
            "select sum(a) over w from t window w as (order by a nulls first)",
            "select group_concat(a order by a nulls last) from t",
            "select id from t offset 1",
            "select id from t limit 1 offset 1 rows",
            "with x (a int) as (select 1) select * from x",
            "select sum(a order by a) from t",
            "select sum(a) within group (order by a) from t",
            "select sum(a) respect nulls from t",
            "select upper(s order by s) from t",
            "select abs(all a) from t",
            "select try_cast(a as signed) from t",
            "select safe_cast(a as signed) from t",
            "select cast(a as signed format 'x') from t",
            "select ceil(a to day) from t",
            "select substring('abc' for 1)",
            "select timestamp with time zone '2001-01-01 00:00:00'",
            "select datetime '2001-01-01 00:00:00'",
            "select 1 == 1",
            "select a not null from t",
            "select id from t where a in (select b from u order by b nulls last)",
            "insert into table t values (1)",
            "insert into t select id from u order by id nulls first",
            "insert into t values (1) on duplicate key update a = try_cast(b as signed)",
            "update t tablesample (10) set a = 1",
            "update t set a = 1 order by id nulls first",
            "update t set a = try_cast(b as signed)",
            "update t global join u on t.id = u.id set t.a = 1",
            "delete from t with (nolock)",
            "delete from t order by id nulls last",
            "delete from t returning t.* except (a)",
            "select id from t for update for share",
            "select :a",
        ];
        for text in refused {
            assert_eq!(code_of(text), 1064, "{text}");
        }
    }

    #[test]
    fn tables_have_no_partitions() {
        for text in [
            "select * from t partition (p0)",
            "select * from u where id in (select id from t partition (p0, p1))",
            "update t partition (p0) set a = 1",
            "delete from t partition (p0)",
            "delete t from t partition (p0) join u using (id)",
            "insert into t partition (p0) values (1)",
            "replace into t partition (p0) values (1)",
            "load data infile 'x' into table t partition (p0)",
        ] {
            assert_eq!(code_of(text), 1747, "{text}");
        }
    }

    #[test]
    fn inserts_name_columns_of_their_table() {
        for text in [
            "insert into t (x.id, a) values (1, 2)",
            "insert into d.t (e.t.id) values (1)",
            "insert into t set x.id = 1",
            "insert into t values (1) on duplicate key update u.a = 1",
            "replace into t (u.id) values (1)",
        ] {
            assert_eq!(code_of(text), 1054, "{text}");
        }
        let text =
            "insert into d.t (t.id, d.t.a, b) values (1, 2, 3) on duplicate key update t.a = 1";
        assert_eq!(code_of(text), 0);
    }

    #[test]
    fn what_mysql_has_is_read() {
        for text in [
            "select sql_no_cache distinct a, t.* from t use index (a) order by a desc limit 1, 2",
            "select group_concat(distinct a order by a desc separator ',') from t",
            "select sum(all a), count(all a), first_value(a) respect nulls over (order by a) from t",
            "select ceil(a), floor(a), trim(both 'x' from a), substring(a from 2 for 1) from t",
            "select date'2001-01-01', time'10:00:00', timestamp'2001-01-01 00:00:00'",
            "select {d '2001-01-01'}, now() + interval 1 day, cast(a as char(5)) from t",
            "select a from t group by a with rollup",
            "with recursive x (a) as (select 1 union all select a + 1 from x) select a from x",
            "select id from t for update of t nowait",
        ] {
            assert_eq!(code_of(text), 0, "{text}");
        }
    }
}
