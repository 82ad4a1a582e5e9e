//! Variables that show how the storage was opened, and the one that may change while it is open.
//!
//! `sync_log` is ours; MySQL's name for much the same is `innodb_flush_log_at_trx_commit`. Setting either sets both:
//!
//! | sync_log | innodb_flush_log_at_trx_commit | a crash may lose |
//! |---|---|---|
//! | ON | 1 | nothing |
//! | INTERVAL | 2 | the commits of the last half second, and of the time that the device takes to write them |
//! | OFF | 0 | the commits since the last checkpoint |

use sheaf_storage::{StorageOptions, SyncLog};

use super::{VariableValue, Variables};

const SYNC_LOG: &str = "sync_log";
const FLUSH_LOG_AT_COMMIT: &str = "innodb_flush_log_at_trx_commit";

const CHOICES: [(SyncLog, &str, i128); 3] = [
    (SyncLog::On, "ON", 1),
    (SyncLog::Interval, "INTERVAL", 2),
    (SyncLog::Off, "OFF", 0),
];

/// Shows the options that a storage was opened with.
pub(crate) fn show_storage_options(globals: &mut Variables, options: &StorageOptions) {
    let sizes = [
        ("archive_lag_limit_bytes", options.archive_lag_limit_bytes),
        ("innodb_log_file_size", options.log_limit_bytes),
        ("innodb_redo_log_capacity", options.log_limit_bytes),
        ("max_pinned_log_bytes", options.max_pinned_log_bytes),
        ("max_spill_bytes", options.max_spill_bytes),
        ("max_temp_bytes", options.max_temp_bytes),
        ("max_row_locks", options.max_row_locks as u64),
        (
            "max_transaction_log_bytes",
            options.max_transaction_log_bytes as u64,
        ),
        ("max_version_bytes", options.max_version_bytes as u64),
    ];
    for (name, size) in sizes {
        globals.set_internally(name, VariableValue::Integer(size.into()));
    }
    let numbers = [
        ("archive_interval", options.archive_interval.as_secs_f64()),
        // As it was written, not with the digits that the longer type adds.
        (
            "fill_factor",
            (f64::from(options.fill_factor) * 1e6).round() / 1e6,
        ),
        (
            "recovery_time_goal",
            options.recovery_time_goal.as_secs_f64(),
        ),
    ];
    for (name, number) in numbers {
        globals.set_internally(name, VariableValue::Float(number));
    }
    show_sync_log(globals, options.sync_log);
}

/// Shows when commits wait for the disk, under both names.
pub(crate) fn show_sync_log(globals: &mut Variables, sync_log: SyncLog) {
    for (choice, word, number) in CHOICES {
        if choice == sync_log {
            globals.set_internally(SYNC_LOG, VariableValue::Text(word.to_string()));
            globals.set_internally(FLUSH_LOG_AT_COMMIT, VariableValue::Integer(number));
        }
    }
}

/// When commits shall wait for the disk, if the variable that was set just now says so.
pub(crate) fn chosen_sync_log(globals: &Variables, name: &str) -> Option<SyncLog> {
    let is_chosen = |word: &str, number: i128| match globals.get(name) {
        Ok(VariableValue::Text(text)) => name.eq_ignore_ascii_case(SYNC_LOG) && text == word,
        Ok(VariableValue::Integer(value)) => {
            name.eq_ignore_ascii_case(FLUSH_LOG_AT_COMMIT) && *value == number
        }
        _ => false,
    };
    let chosen = CHOICES
        .into_iter()
        .find(|&(_, word, number)| is_chosen(word, number));
    chosen.map(|(choice, _, _)| choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_say_the_same() {
        for (choice, word, number) in CHOICES {
            let mut globals = Variables::default();
            show_sync_log(&mut globals, choice);
            assert_eq!(
                globals.get(SYNC_LOG),
                Ok(&VariableValue::Text(word.to_string()))
            );
            assert_eq!(
                globals.get(FLUSH_LOG_AT_COMMIT),
                Ok(&VariableValue::Integer(number))
            );
            assert_eq!(chosen_sync_log(&globals, "sync_log"), Some(choice));
            assert_eq!(
                chosen_sync_log(&globals, "INNODB_flush_log_at_trx_commit"),
                Some(choice)
            );
            assert_eq!(chosen_sync_log(&globals, "autocommit"), None);
        }
    }
}
