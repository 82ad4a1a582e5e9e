//! The [`Circumstances`] of a session as they are now.

use sheaf_frontend::query::SessionValues;
use sheaf_types::temporal::split_datetime;

use crate::session::Session;
use crate::session::circumstances::Circumstances;

impl Session {
    /// What plans depend on, as it is now.
    pub(crate) fn circumstances(&self) -> Circumstances {
        Circumstances {
            variables: self.variables.clone(),
            database: self.database.clone(),
            schema_version: self.engine.catalog().schema_version(),
            temporary_version: self.temporary.version(),
            day: None,
        }
    }

    /// The same of expressions.
    pub(crate) fn circumstances_of_day(&self) -> Circumstances {
        Circumstances {
            day: Some(self.local_day()),
            ..self.circumstances()
        }
    }

    /// Whether nothing has changed since.
    pub(crate) fn is_still_under(&self, known: &Circumstances) -> bool {
        known.schema_version == self.engine.catalog().schema_version()
            && known.temporary_version == self.temporary.version()
            && known.variables.is_same(&self.variables)
            && known.database == self.database
            && known.day.is_none_or(|day| day == self.local_day())
    }

    /// The day of the running statement in the session's time zone.
    fn local_day(&self) -> i32 {
        split_datetime(self.local_now_micros()).0
    }

    /// The wall clock of the session at the start of the statement.
    pub(crate) fn local_now_micros(&self) -> i64 {
        self.now_utc_micros() + i64::from(self.time_zone_offset_seconds()) * 1_000_000
    }
}
