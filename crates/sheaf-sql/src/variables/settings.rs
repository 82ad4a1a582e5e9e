//! Values that every statement asks for, as what they mean.
//!
//! Finding a variable by its name and reading its text takes longer than many a statement. So these are read when a
//! variable is assigned, and shared with the values.

use std::time::Duration;

use sheaf_table::AutoIncrementSeries;
use sheaf_types::Collation;
use sheaf_types::assignment::Mode;
use sheaf_types::temporal::TimeZone;

use super::{
    BINARY_COLLATION_ID, Isolation, OWN_COLLATION_ID, SqlMode, VariableValue, collation,
    default_collation, flags, optimizer_switch, position,
};
use crate::encoding::TextEncoding;

/// The id of utf8mb4_0900_ai_ci.
const DEFAULT_ID: u16 = 255;

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) autocommit: bool,
    pub(super) sql_mode: SqlMode,
    pub(super) assignment_mode: Mode,
    pub(super) direct_plans: bool,
    pub(super) merges_derived_tables: bool,
    pub(super) uses_invisible_indexes: bool,
    pub(super) pushes_index_conditions: bool,
    pub(super) traces_optimizer: bool,
    /// What `div_precision_increment` says.
    pub(super) quotient_decimals: u8,
    pub(super) foreign_key_checks: bool,
    pub(super) auto_increment_series: AutoIncrementSeries,
    /// Whether notes are among the warnings of a statement.
    pub(super) takes_notes: bool,
    /// The most rows that a query may be expected to examine.
    pub(super) max_join_size: u64,
    pub(super) sql_safe_updates: bool,
    pub(super) isolation: Isolation,
    pub(super) read_only: bool,
    pub(super) max_allowed_packet: u64,
    pub(super) wait_timeout_seconds: u64,
    pub(super) net_read_timeout_seconds: u64,
    pub(super) net_write_timeout_seconds: u64,
    pub(super) lock_wait_timeout_seconds: u64,
    pub(super) innodb_lock_wait_timeout_seconds: u64,
    pub(super) max_error_count: u64,
    pub(super) sql_select_limit: u64,
    pub(super) max_execution_time_ms: u64,
    pub(super) max_statement_time_ms: u64,
    pub(super) long_query_time: Duration,
    pub(super) result_collation_id: u16,
    pub(super) connection_collation_id: u16,
    pub(super) literal_collation: Collation,
    pub(super) client_encoding: TextEncoding,
    pub(super) result_encoding: TextEncoding,
    /// The clock that SET timestamp pinned, in microseconds since 1970 UTC.
    pub(super) pinned_now_micros: Option<i64>,
}

impl Settings {
    /// Reads the values by their positions, which are those of the definitions.
    pub(super) fn of<'a>(value_at: impl Fn(usize) -> &'a VariableValue) -> Settings {
        let value = |name: &str| position(name).ok().map(&value_at);
        let boolean = |name| matches!(value(name), Some(VariableValue::Bool(true)));
        let integer = |name| match value(name) {
            Some(VariableValue::Integer(number)) => u64::try_from(*number).unwrap_or(0),
            _ => 0,
        };
        let text = |name| match value(name) {
            Some(VariableValue::Text(text)) => text.as_str(),
            _ => "",
        };
        let switch = optimizer_switch(text("optimizer_switch"));
        let traces_optimizer = flags::is_on(text("optimizer_trace"), "enabled");
        let sql_safe_updates = boolean("sql_safe_updates");
        let max_join_size = match boolean("sql_big_selects") {
            true => u64::MAX,
            false => integer("max_join_size"),
        };
        let is_any_size = max_join_size == u64::MAX;
        let sql_mode = SqlMode::parse(text("sql_mode")).unwrap_or_default();
        Settings {
            autocommit: boolean("autocommit"),
            sql_mode,
            assignment_mode: Mode {
                strict: sql_mode.is_strict(),
                zero_date: !sql_mode.contains("NO_ZERO_DATE"),
                zero_in_date: !sql_mode.contains("NO_ZERO_IN_DATE"),
                today: None,
                time_zone: TimeZone::read(text("time_zone")).unwrap_or_default(),
            },
            // A plan of operators says whether it uses a key. Direct plans use no index that is invisible, and read
            // CHAR columns as they are stored.
            direct_plans: switch.direct
                && !sql_mode.contains("PAD_CHAR_TO_FULL_LENGTH")
                && !switch.use_invisible_indexes
                && !sql_safe_updates
                && is_any_size,
            uses_invisible_indexes: switch.use_invisible_indexes,
            sql_safe_updates,
            max_join_size,
            takes_notes: boolean("sql_notes"),
            merges_derived_tables: switch.derived_merge,
            pushes_index_conditions: switch.index_condition_pushdown,
            traces_optimizer,
            quotient_decimals: u8::try_from(integer("div_precision_increment")).unwrap_or(u8::MAX),
            foreign_key_checks: !matches!(
                value("foreign_key_checks"),
                Some(VariableValue::Bool(false))
            ),
            auto_increment_series: AutoIncrementSeries::new(
                integer("auto_increment_increment"),
                integer("auto_increment_offset"),
            ),
            isolation: Isolation::of_name(text("transaction_isolation")),
            read_only: boolean("transaction_read_only"),
            max_allowed_packet: integer("max_allowed_packet"),
            wait_timeout_seconds: integer("wait_timeout"),
            net_read_timeout_seconds: integer("net_read_timeout"),
            net_write_timeout_seconds: integer("net_write_timeout"),
            lock_wait_timeout_seconds: integer("lock_wait_timeout"),
            innodb_lock_wait_timeout_seconds: integer("innodb_lock_wait_timeout"),
            max_error_count: integer("max_error_count"),
            sql_select_limit: integer("sql_select_limit"),
            max_execution_time_ms: integer("max_execution_time"),
            max_statement_time_ms: match value("max_statement_time") {
                Some(VariableValue::Float(seconds)) => (seconds * 1000.0).ceil() as u64,
                _ => 0,
            },
            long_query_time: match value("long_query_time") {
                Some(VariableValue::Float(seconds)) => {
                    Duration::try_from_secs_f64(*seconds).unwrap_or(Duration::MAX)
                }
                _ => Duration::MAX,
            },
            result_collation_id: result_collation_id(
                text("character_set_results"),
                text("collation_connection"),
            ),
            connection_collation_id: collation(text("collation_connection"))
                .map_or(DEFAULT_ID, |(id, _)| id),
            literal_collation: Collation::nearest(text("collation_connection")),
            client_encoding: TextEncoding::of_character_set(text("character_set_client")),
            result_encoding: TextEncoding::of_character_set(text("character_set_results")),
            pinned_now_micros: match value("timestamp") {
                Some(VariableValue::Float(seconds)) if *seconds > 0.0 => {
                    Some((seconds * 1e6) as i64)
                }
                _ => None,
            },
        }
    }
}

fn result_collation_id(results: &str, connection: &str) -> u16 {
    match results {
        // NULL: no conversion.
        "" => return OWN_COLLATION_ID,
        "binary" => return BINARY_COLLATION_ID,
        _ => {}
    }
    // The collation of the connection if that is of the same character set.
    let name = if connection.split('_').next() == Some(results) {
        connection
    } else {
        default_collation(results)
    };
    collation(name).map_or(DEFAULT_ID, |(id, _)| id)
}
