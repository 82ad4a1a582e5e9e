//! System variables: what SET assigns, SHOW VARIABLES lists and `@@name` reads.
//!
//! One table describes every variable: its scope, its type with limits, its default. Names, defaults and the four
//! errors (1193 unknown, 1231 wrong value, 1232 wrong type, 1238 read only) are MySQL's, so that clients, drivers and
//! dumps find what they ask for. Many of the variables tune engines that are not here. They are kept, shown and without
//! effect, and the table says so by leaving them out of [`Variables`]'s accessors. Those that would protect something,
//! or change what statements do, are told apart in [`unheeded`]: no user is to rely on them by mistake.
//!
//! The engine holds the global values. A session starts with a shared copy of them; when it changes a value it gets one
//! of its own, which keeps what differs from the defaults.

mod assign;
mod binary_log;
mod flags;
mod gtids;
mod isolation;
mod monitoring;
pub(crate) mod persisted;
#[cfg(test)]
mod reference;
mod restricted;
mod settings;
mod sql_mode;
mod storage;
mod table;
mod unheeded;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sheaf_exec::functions::date_names::{LOCALES, date_names, locale_named};
use sheaf_optimizer::OptimizerSwitch;
use sheaf_storage::LockWait;
use sheaf_table::AutoIncrementSeries;
use sheaf_types::assignment::Mode;
use sheaf_types::error::codes;
use sheaf_types::temporal::TimeZone;

use crate::encoding::TextEncoding;
use crate::error::{Result, SqlError};
use crate::parser::statement::Scope;
pub use assign::assign;
pub(crate) use assign::{assign_global, is_read_only, known_name, of_configuration, said_of};
pub(crate) use binary_log::{show_binary_log, show_gtids};
pub(crate) use gtids::{
    ANONYMOUS, AUTOMATIC, GTID_NEXT, GTID_OWNED, GTID_PURGED, SaidNext, SaidPurged,
};
pub(crate) use isolation::{Isolation, NextTransaction};
pub(crate) use restricted::{RESTRICTED, TO_SET_GLOBALS};
use settings::Settings;
pub use sheaf_frontend::character_sets::{
    BINARY_COLLATION_ID, CHARACTER_SETS, COLLATIONS, OWN_COLLATION_ID, character_set,
    character_set_of, collation, collation_of_id, collation_within, default_collation,
    encoding_of_collation_id, named_collation, statement_character_set,
    unsupported_character_set_of_id,
};
pub use sql_mode::SqlMode;
pub(crate) use storage::{chosen_sync_log, show_storage_options, show_sync_log};
use table::DEFINITIONS;
pub(crate) use unheeded::without_effect;

/// The version that clients see. Drivers read the leading number as MySQL's to decide what they may send.
pub const SERVER_VERSION: &str = concat!("8.0.99-Sheaf-", env!("CARGO_PKG_VERSION"));

/// The longest value of a text variable, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lives {
    /// One value for all: SET GLOBAL only.
    Global,
    /// One value per session and a global one that new sessions start with.
    Both,
    /// One value per session.
    Session,
    /// Cannot be set.
    ReadOnly,
}

/// Variables that no session can set, and of which each has its own value.
const FACTS_OF_SESSIONS: [&str; 7] = [
    "error_count",
    "external_user",
    "gtid_owned",
    "max_user_connections",
    "proxy_user",
    "statement_id",
    "warning_count",
];

/// A variable's type and its limits.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Bool,
    /// Values outside are clamped with warning 1292.
    Integer {
        min: i64,
        max: u64,
    },
    Float {
        min: f64,
        max: f64,
    },
    Text,
    /// One of these words, or its position.
    Choice(&'static [&'static str]),
    OptimizerSwitch,
    /// A list of `flag=on|off|default`; flags that are not named keep their values.
    Flags(&'static [&'static str]),
    SqlMode,
    CharacterSet,
    Collation,
    TimeZone,
    /// A name or a number.
    Locale,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Definition {
    name: &'static str,
    lives: Lives,
    kind: Kind,
    /// As text of its kind.
    default: &'static str,
}

/// A variable's value.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
}

impl fmt::Display for VariableValue {
    /// As SHOW VARIABLES prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VariableValue::Bool(true) => f.write_str("ON"),
            VariableValue::Bool(false) => f.write_str("OFF"),
            VariableValue::Integer(number) => write!(f, "{number}"),
            VariableValue::Float(number) => write!(f, "{number:.6}"),
            VariableValue::Text(text) => f.write_str(text),
        }
    }
}

/// What SET assigns, after its expression is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum NewValue {
    Default,
    Null,
    Integer(i128),
    Float(f64),
    Text(String),
}

impl NewValue {
    fn text(&self) -> String {
        match self {
            NewValue::Default => "DEFAULT".into(),
            NewValue::Null => "NULL".into(),
            NewValue::Integer(number) => number.to_string(),
            NewValue::Float(number) => number.to_string(),
            NewValue::Text(text) => text.clone(),
        }
    }
}

/// A value was not taken as given: warning 1292.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    pub variable: String,
    pub value: String,
}

/// Which users may not change anything, as `read_only` and `super_read_only` say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServerReadOnly {
    #[default]
    Nobody,
    /// Users without CONNECTION_ADMIN and SUPER.
    WithoutPrivilege,
    All,
}

/// A set of values: the global ones, or a session's.
#[derive(Clone)]
pub struct Variables {
    values: Arc<Values>,
}

#[derive(Clone)]
struct Values {
    /// In the order of the definitions.
    defaults: Arc<[VariableValue]>,
    /// What was assigned, by position: little, in most sessions.
    assigned: Vec<(usize, VariableValue)>,
    settings: Settings,
}

impl Values {
    fn at(&self, position: usize) -> &VariableValue {
        let found = self.assigned.iter().find(|(at, _)| *at == position);
        found.map_or(&self.defaults[position], |(_, value)| value)
    }
}

/// Other names of variables, MariaDB's and older MySQL's.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("identity", "last_insert_id"),
    ("mrr_buffer_size", "read_rnd_buffer_size"),
    ("storage_engine", "default_storage_engine"),
    ("tx_isolation", "transaction_isolation"),
    ("tx_read_only", "transaction_read_only"),
];

/// The variable that a name stands for.
fn canonical(name: &str) -> &str {
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == name);
    other.map_or(name, |(_, variable)| variable)
}

/// Spellings that are listed beside their variable.
const ALIASES: [&str; 3] = ["mrr_buffer_size", "tx_isolation", "tx_read_only"];

fn position(name: &str) -> Result<usize> {
    let lower = name.to_ascii_lowercase();
    let variable = canonical(&lower);
    DEFINITIONS
        .binary_search_by(|definition| definition.name.cmp(variable))
        .map_err(|_| SqlError::unknown_system_variable(name))
}

/// The switch that a stored value stands for; the empty one is the default.
fn optimizer_switch(text: &str) -> OptimizerSwitch {
    let mut switch = OptimizerSwitch::default();
    // Stored values were applied before, so this cannot fail.
    let _ = switch.apply(text);
    switch
}

impl Definition {
    fn default_value(&self) -> VariableValue {
        match self.kind {
            Kind::Bool => VariableValue::Bool(self.default == "ON"),
            Kind::Integer { .. } => {
                VariableValue::Integer(self.default.parse().unwrap_or_default())
            }
            Kind::Float { .. } => VariableValue::Float(self.default.parse().unwrap_or_default()),
            Kind::OptimizerSwitch => VariableValue::Text(OptimizerSwitch::default().to_string()),
            _ => VariableValue::Text(self.default.to_string()),
        }
    }

    fn wrong_value(&self, new: &NewValue) -> SqlError {
        SqlError::wrong_value_for_variable(self.name, &new.text())
    }

    /// Checks and converts a new value; `current` is what flags are merged into.
    fn convert(
        &self,
        new: &NewValue,
        current: &VariableValue,
    ) -> Result<(VariableValue, Option<Truncated>)> {
        let value = match self.kind {
            Kind::Bool => VariableValue::Bool(self.boolean(new)?),
            Kind::Integer { min, max } => {
                let NewValue::Integer(number) = new else {
                    return Err(SqlError::wrong_type_for_variable(self.name));
                };
                let clamped = (*number).clamp(i128::from(min), i128::from(max));
                let truncated = (clamped != *number).then(|| Truncated {
                    variable: self.name.into(),
                    value: number.to_string(),
                });
                return Ok((VariableValue::Integer(clamped), truncated));
            }
            Kind::Float { min, max } => {
                let number = match new {
                    NewValue::Integer(number) => *number as f64,
                    NewValue::Float(number) => *number,
                    _ => return Err(SqlError::wrong_type_for_variable(self.name)),
                };
                let clamped = number.clamp(min, max);
                let truncated = (clamped != number).then(|| Truncated {
                    variable: self.name.into(),
                    value: number.to_string(),
                });
                return Ok((VariableValue::Float(clamped), truncated));
            }
            Kind::Text => match new {
                NewValue::Text(text) if text.len() <= MAX_TEXT_BYTES => {
                    VariableValue::Text(text.clone())
                }
                NewValue::Null => VariableValue::Text(String::new()),
                NewValue::Text(_) => return Err(self.wrong_value(new)),
                _ => return Err(SqlError::wrong_type_for_variable(self.name)),
            },
            Kind::Choice(words) => {
                let found = match new {
                    NewValue::Text(text) => {
                        words.iter().find(|word| word.eq_ignore_ascii_case(text))
                    }
                    NewValue::Integer(number) => {
                        usize::try_from(*number).ok().and_then(|n| words.get(n))
                    }
                    NewValue::Float(_) => return Err(SqlError::wrong_type_for_variable(self.name)),
                    _ => None,
                };
                VariableValue::Text(found.ok_or_else(|| self.wrong_value(new))?.to_string())
            }
            Kind::OptimizerSwitch => {
                let NewValue::Text(text) = new else {
                    return Err(self.wrong_value(new));
                };
                let mut switch = optimizer_switch(&current.to_string());
                switch
                    .apply(text)
                    .map_err(|piece| SqlError::wrong_value_for_variable(self.name, &piece))?;
                VariableValue::Text(switch.to_string())
            }
            Kind::Flags(flags) => {
                let text = match new {
                    NewValue::Text(text) => text.clone(),
                    NewValue::Integer(bits) => {
                        flags::of_bits(flags, *bits).ok_or_else(|| self.wrong_value(new))?
                    }
                    _ => return Err(self.wrong_value(new)),
                };
                let changed = flags::merge(flags, self.default, &current.to_string(), &text)
                    .map_err(|piece| SqlError::wrong_value_for_variable(self.name, &piece))?;
                VariableValue::Text(changed)
            }
            Kind::SqlMode => match new {
                NewValue::Text(text) => VariableValue::Text(SqlMode::parse(text)?.to_string()),
                NewValue::Integer(number) => match SqlMode::words_of_number(*number) {
                    Some(words) => VariableValue::Text(SqlMode::parse(&words)?.to_string()),
                    None => return Err(self.wrong_value(new)),
                },
                _ => return Err(self.wrong_value(new)),
            },
            Kind::CharacterSet => match new {
                NewValue::Text(text) => {
                    let set = match self.name {
                        "character_set_client" => statement_character_set(text)?,
                        _ => character_set(text)?,
                    };
                    VariableValue::Text(set.to_string())
                }
                NewValue::Null if self.name == "character_set_results" => {
                    VariableValue::Text(String::new())
                }
                _ => return Err(self.wrong_value(new)),
            },
            Kind::Collation => match new {
                NewValue::Text(text) => VariableValue::Text(collation(text)?.1.to_string()),
                _ => return Err(self.wrong_value(new)),
            },
            Kind::TimeZone => {
                let text = match new {
                    NewValue::Text(text) => text,
                    NewValue::Null => return Err(self.wrong_value(new)),
                    _ => return Err(SqlError::wrong_type_for_variable(self.name)),
                };
                let Some(zone) = TimeZone::read(text) else {
                    return Err(SqlError::new(
                        codes::UNKNOWN_TIME_ZONE,
                        format!("Unknown or incorrect time zone: '{text}'"),
                    ));
                };
                VariableValue::Text(time_zone_name(text, zone.offset_seconds()))
            }
            Kind::Locale => VariableValue::Text(self.locale(new)?.to_string()),
        };
        Ok((value, None))
    }

    /// A locale whose names of days and months there are.
    fn locale(&self, new: &NewValue) -> Result<&'static str> {
        let found = match new {
            NewValue::Text(name) => locale_named(name),
            NewValue::Integer(number) => {
                let number = usize::try_from(*number).ok();
                number.and_then(|number| LOCALES.get(number)).copied()
            }
            NewValue::Float(_) => return Err(SqlError::wrong_type_for_variable(self.name)),
            NewValue::Null | NewValue::Default => return Err(self.wrong_value(new)),
        };
        let Some(locale) = found else {
            let message = format!("Unknown locale: '{}'", new.text());
            return Err(SqlError::new(codes::UNKNOWN_LOCALE, message));
        };
        match date_names(locale) {
            Some(_) => Ok(locale),
            None => Err(SqlError::not_supported_yet(format!(
                "{} = {locale}",
                self.name
            ))),
        }
    }

    fn boolean(&self, new: &NewValue) -> Result<bool> {
        match new {
            NewValue::Integer(0) => Ok(false),
            NewValue::Integer(1) => Ok(true),
            NewValue::Text(text)
                if text.eq_ignore_ascii_case("ON") || text.eq_ignore_ascii_case("TRUE") =>
            {
                Ok(true)
            }
            NewValue::Text(text)
                if text.eq_ignore_ascii_case("OFF") || text.eq_ignore_ascii_case("FALSE") =>
            {
                Ok(false)
            }
            NewValue::Float(_) => Err(SqlError::wrong_type_for_variable(self.name)),
            _ => Err(self.wrong_value(new)),
        }
    }
}

impl Default for Variables {
    fn default() -> Self {
        let defaults: Arc<[VariableValue]> =
            DEFINITIONS.iter().map(Definition::default_value).collect();
        let settings = Settings::of(|position| &defaults[position]);
        Variables {
            values: Arc::new(Values {
                defaults,
                assigned: Vec::new(),
                settings,
            }),
        }
    }
}

impl Variables {
    /// The value of a variable. Error 1193.
    pub fn get(&self, name: &str) -> Result<&VariableValue> {
        Ok(self.values.at(position(name)?))
    }

    /// Whether nothing was assigned to either since one was cloned from the other.
    pub(crate) fn is_same(&self, other: &Variables) -> bool {
        Arc::ptr_eq(&self.values, &other.values)
    }

    /// Checks that a variable may be read as `@@global.name` or `@@session.name`. Error 1238 as MySQL has it.
    pub fn check_readable(scope: Scope, name: &str) -> Result<()> {
        let definition = &DEFINITIONS[position(name)?];
        match (scope, definition.lives) {
            (Scope::Global, Lives::Session) => Err(SqlError::session_variable(name)),
            (Scope::Session, Lives::Global | Lives::ReadOnly)
                if !FACTS_OF_SESSIONS.contains(&definition.name) =>
            {
                Err(SqlError::no_session_value(name))
            }
            _ => Ok(()),
        }
    }

    /// True if sessions have no value of their own.
    pub fn is_global_only(name: &str) -> bool {
        position(name).is_ok_and(|position| {
            matches!(DEFINITIONS[position].lives, Lives::Global | Lives::ReadOnly)
        })
    }

    /// Sets a value that no statement may set, such as the version or the size of the pool.
    pub(crate) fn set_internally(&mut self, name: &str, value: VariableValue) {
        if let Ok(position) = position(name) {
            self.assign(position, value);
        }
    }

    /// Tells clients of the collation of the current database.
    pub(crate) fn set_database_collation(&mut self, collation: &str) {
        let character_set = character_set_of(collation).to_string();
        self.set_internally("character_set_database", VariableValue::Text(character_set));
        self.set_internally(
            "collation_database",
            VariableValue::Text(collation.to_string()),
        );
    }

    /// All variables with their values, by name. `global` leaves out what only sessions have.
    pub fn all(&self, global: bool) -> Vec<(&'static str, String)> {
        let mut all: Vec<(&'static str, String)> = DEFINITIONS
            .iter()
            .enumerate()
            .filter(|(_, definition)| !(global && definition.lives == Lives::Session))
            .map(|(position, definition)| (definition.name, self.values.at(position).to_string()))
            .collect();
        for alias in ALIASES {
            if let Ok(value) = self.get(alias) {
                all.push((alias, value.to_string()));
            }
        }
        all.sort_unstable_by_key(|(name, _)| *name);
        all
    }

    /// The name of a variable as the table has it, and its value as SHOW VARIABLES prints it. Error 1193.
    pub(crate) fn name_and_text(&self, name: &str) -> Result<(&'static str, String)> {
        let position = position(name)?;
        let text = self.values.at(position).to_string();
        Ok((DEFINITIONS[position].name, text))
    }

    fn assign(&mut self, position: usize, value: VariableValue) {
        if *self.values.at(position) == value {
            return;
        }
        let values = Arc::make_mut(&mut self.values);
        match values.assigned.iter_mut().find(|(at, _)| *at == position) {
            Some((_, old)) => *old = value,
            None => values.assigned.push((position, value)),
        }
        values.settings = Settings::of(|position| values.at(position));
    }

    fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Ok(VariableValue::Text(text)) => text,
            _ => "",
        }
    }

    fn integer(&self, name: &str) -> u64 {
        match self.get(name) {
            Ok(VariableValue::Integer(number)) => u64::try_from(*number).unwrap_or(0),
            _ => 0,
        }
    }

    fn boolean(&self, name: &str) -> bool {
        matches!(self.get(name), Ok(VariableValue::Bool(true)))
    }
}

/// The values that the session acts on.
impl Variables {
    pub fn autocommit(&self) -> bool {
        self.values.settings.autocommit
    }

    pub fn sql_mode(&self) -> SqlMode {
        self.values.settings.sql_mode
    }

    /// How values go into columns.
    pub(crate) fn assignment_mode(&self) -> Mode {
        self.values.settings.assignment_mode
    }

    /// Whether UPDATE and DELETE need a condition on a key, or a LIMIT.
    pub(crate) fn sql_safe_updates(&self) -> bool {
        self.values.settings.sql_safe_updates
    }

    /// Whether a session begins with all roles of its account.
    pub(crate) fn activates_all_roles(&self) -> bool {
        self.boolean("activate_all_roles_on_login")
    }

    /// Rounds that a recursive CTE may take.
    pub(crate) fn cte_max_recursion_depth(&self) -> u64 {
        self.integer("cte_max_recursion_depth")
    }

    /// Which users may not change anything, of the global variables.
    pub(crate) fn server_read_only(&self) -> ServerReadOnly {
        match (self.boolean("super_read_only"), self.boolean("read_only")) {
            (true, _) => ServerReadOnly::All,
            (false, true) => ServerReadOnly::WithoutPrivilege,
            (false, false) => ServerReadOnly::Nobody,
        }
    }

    /// Whether statements about a few rows run without a vectorised plan.
    pub(crate) fn direct_plans(&self) -> bool {
        self.values.settings.direct_plans
    }

    /// Whether derived tables become part of the query around them.
    pub(crate) fn merges_derived_tables(&self) -> bool {
        self.values.settings.merges_derived_tables
    }

    /// Decimals that `/` and AVG add to those of the dividend.
    pub(crate) fn quotient_decimals(&self) -> u8 {
        self.values.settings.quotient_decimals
    }

    pub(crate) fn uses_invisible_indexes(&self) -> bool {
        self.values.settings.uses_invisible_indexes
    }

    /// Whether entries of an index are tested before their rows are fetched.
    pub(crate) fn pushes_index_conditions(&self) -> bool {
        self.values.settings.pushes_index_conditions
    }

    /// The clock that SET timestamp pinned, in microseconds since 1970 UTC.
    pub(crate) fn pinned_now_micros(&self) -> Option<i64> {
        self.values.settings.pinned_now_micros
    }

    pub fn optimizer_switch(&self) -> OptimizerSwitch {
        optimizer_switch(self.text("optimizer_switch"))
    }

    /// Whether planning is traced.
    pub(crate) fn traces_optimizer(&self) -> bool {
        self.values.settings.traces_optimizer
    }

    /// A flag of `optimizer_trace`.
    pub(crate) fn optimizer_trace_flag(&self, flag: &str) -> bool {
        flags::is_on(self.text("optimizer_trace"), flag)
    }

    pub(crate) fn optimizer_trace_offset(&self) -> i64 {
        match self.get("optimizer_trace_offset") {
            Ok(VariableValue::Integer(offset)) => i64::try_from(*offset).unwrap_or(-1),
            _ => -1,
        }
    }

    pub(crate) fn optimizer_trace_limit(&self) -> u64 {
        self.integer("optimizer_trace_limit")
    }

    pub(crate) fn optimizer_trace_max_mem_size(&self) -> usize {
        self.integer("optimizer_trace_max_mem_size") as usize
    }

    pub(crate) fn end_markers_in_json(&self) -> bool {
        self.boolean("end_markers_in_json")
    }

    /// Bytes of the row-id buffer of one multi-range read.
    pub fn mrr_buffer_bytes(&self) -> usize {
        self.integer("read_rnd_buffer_size") as usize
    }

    pub fn eq_range_index_dive_limit(&self) -> usize {
        self.integer("eq_range_index_dive_limit") as usize
    }

    /// Tables are analyzed when enough of them has changed.
    pub fn stats_auto_recalc(&self) -> bool {
        self.boolean("innodb_stats_auto_recalc")
    }

    pub fn join_buffer_bytes(&self) -> usize {
        self.integer("join_buffer_size") as usize
    }

    pub fn max_allowed_packet(&self) -> usize {
        self.values.settings.max_allowed_packet as usize
    }

    /// Clients of one account that may be connected at the same time; 0: any number.
    /// How long a statement waits for query memory that others have.
    pub(crate) fn query_memory_wait_timeout(&self) -> Duration {
        Duration::from_secs(self.integer("query_memory_wait_timeout"))
    }

    pub(crate) fn max_user_connections(&self) -> usize {
        self.integer("max_user_connections") as usize
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_secs(self.integer("connect_timeout"))
    }

    pub fn wait_timeout_seconds(&self) -> u64 {
        self.values.settings.wait_timeout_seconds
    }

    pub fn net_write_timeout_seconds(&self) -> u64 {
        self.values.settings.net_write_timeout_seconds
    }

    pub fn net_read_timeout_seconds(&self) -> u64 {
        self.values.settings.net_read_timeout_seconds
    }

    /// A statement that takes as long counts as slow.
    pub fn long_query_time(&self) -> Duration {
        self.values.settings.long_query_time
    }

    /// Whether foreign keys are enforced.
    pub fn foreign_key_checks(&self) -> bool {
        self.values.settings.foreign_key_checks
    }

    /// What AUTO_INCREMENT gives out to the session.
    pub(crate) fn auto_increment_series(&self) -> AutoIncrementSeries {
        self.values.settings.auto_increment_series
    }

    /// What InnoDB gives to rows when it adds an AUTO_INCREMENT column without a copy.
    pub(crate) fn auto_increment_series_in_place(&self) -> AutoIncrementSeries {
        AutoIncrementSeries::in_place(
            self.integer("auto_increment_increment"),
            self.integer("auto_increment_offset"),
        )
    }

    /// Whether notes are among the warnings of a statement.
    pub(crate) fn takes_notes(&self) -> bool {
        self.values.settings.takes_notes
    }

    /// The most rows that a query may be expected to examine.
    pub(crate) fn max_join_size(&self) -> u64 {
        self.values.settings.max_join_size
    }

    /// The isolation level of the session's transactions.
    pub(crate) fn transaction_isolation(&self) -> Isolation {
        self.values.settings.isolation
    }

    pub fn transaction_read_only(&self) -> bool {
        self.values.settings.read_only
    }

    /// Seconds that a statement waits for others that change what it wants to change.
    pub fn innodb_lock_wait_timeout_seconds(&self) -> u64 {
        self.values.settings.innodb_lock_wait_timeout_seconds
    }

    pub fn lock_wait_timeout_seconds(&self) -> u64 {
        self.values.settings.lock_wait_timeout_seconds
    }

    /// How long a statement waits for locks of rows: as it says itself, or as `innodb_lock_wait_timeout` says.
    pub(crate) fn row_lock_wait(&self, wait: Option<Duration>) -> LockWait {
        match wait {
            Some(Duration::ZERO) => LockWait::No,
            Some(wait) => LockWait::AtMost(wait),
            None => {
                let seconds = self.innodb_lock_wait_timeout_seconds();
                LockWait::AtMost(Duration::from_secs(seconds))
            }
        }
    }

    /// How long a statement waits to write a table: for LOCK TABLES as for a change of definitions, and for a load as
    /// for rows.
    pub(crate) fn write_lock_wait(&self, is_locked_by_session: bool) -> Duration {
        Duration::from_secs(match is_locked_by_session {
            true => self.lock_wait_timeout_seconds(),
            false => self.innodb_lock_wait_timeout_seconds(),
        })
    }

    /// How long the rows of a load wait for the readers of its table, while its writers wait for the load.
    pub(crate) fn load_lock_wait(&self) -> Duration {
        self.write_lock_wait(true).min(self.write_lock_wait(false))
    }

    /// How long a query may take; `None`: any time. MariaDB's variable comes first: it was set on purpose.
    pub fn query_time_limit(&self) -> Option<Duration> {
        let limit = Duration::from_millis(self.values.settings.max_execution_time_ms);
        self.statement_time_limit()
            .or((!limit.is_zero()).then_some(limit))
    }

    /// How long any statement may take; `None`: any time.
    pub fn statement_time_limit(&self) -> Option<Duration> {
        let limit = Duration::from_millis(self.values.settings.max_statement_time_ms);
        (!limit.is_zero()).then_some(limit)
    }

    pub fn max_error_count(&self) -> usize {
        self.values.settings.max_error_count as usize
    }

    pub fn sql_select_limit(&self) -> u64 {
        self.values.settings.sql_select_limit
    }

    pub fn max_prepared_statements(&self) -> usize {
        self.integer("max_prepared_stmt_count") as usize
    }

    /// Bytes that an index build beside writers notes at most.
    pub fn online_alter_log_bytes(&self) -> u64 {
        self.integer("innodb_online_alter_log_max_size")
    }

    pub fn local_infile(&self) -> bool {
        self.boolean("local_infile")
    }

    /// Seconds east of UTC.
    pub fn time_zone_offset_seconds(&self) -> i32 {
        self.time_zone().offset_seconds()
    }

    pub fn time_zone(&self) -> TimeZone {
        self.values.settings.assignment_mode.time_zone
    }

    /// The id of `collation_connection`.
    pub fn connection_collation_id(&self) -> u16 {
        self.values.settings.connection_collation_id
    }

    /// What literals compare by: `collation_connection`, or what is most like it.
    pub fn literal_collation(&self) -> sheaf_types::Collation {
        self.values.settings.literal_collation
    }

    /// The collation of databases that name none, by name.
    pub fn collation_server(&self) -> &str {
        self.text("collation_server")
    }

    /// How the client writes statements.
    pub(crate) fn client_encoding(&self) -> TextEncoding {
        self.values.settings.client_encoding
    }

    /// How the client reads results.
    pub(crate) fn result_encoding(&self) -> TextEncoding {
        self.values.settings.result_encoding
    }

    /// The collation id that result texts are labelled with.
    pub fn result_collation_id(&self) -> u16 {
        self.values.settings.result_collation_id
    }
}

/// A time zone that was given as `text`, as it is shown.
fn time_zone_name(text: &str, offset_seconds: i32) -> String {
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return text.to_ascii_uppercase();
    }
    let sign = if offset_seconds < 0 { '-' } else { '+' };
    let minutes = offset_seconds.unsigned_abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests;
