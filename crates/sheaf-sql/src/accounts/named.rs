//! The accounts that a statement names: which of them are there, and which it leaves out.

use std::sync::Arc;

use sheaf_table::{Account, AccountName, Accounts};
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};

/// The most accounts of a database. Each connection looks at all of them.
const MAX_ACCOUNTS: usize = 10_000;

/// What a statement tells besides: names that it left out because of IF EXISTS or IF NOT EXISTS.
pub(super) type LeftOut = Vec<AccountName>;

/// Error 1396 for accounts that are there already, unless they are to be left out.
pub(super) fn create(
    accounts: &mut Accounts,
    made: Vec<Account>,
    operation: &str,
    if_not_exists: bool,
) -> Result<LeftOut> {
    let (mut left_out, mut seen) = (LeftOut::new(), Vec::new());
    for account in made {
        let name = account.name.clone();
        if accounts.contains_key(&name) || seen.contains(&name) {
            left_out.push(name);
        } else {
            seen.push(name.clone());
            accounts.insert(name, Arc::new(account));
        }
    }
    if !left_out.is_empty() && !if_not_exists {
        return Err(operation_failed(operation, &left_out));
    }
    if accounts.len() > MAX_ACCOUNTS {
        return Err(SqlError::unknown(format!(
            "A database has at most {MAX_ACCOUNTS} accounts"
        )));
    }
    Ok(left_out)
}

/// The accounts that are not there. Error 1396 for them, unless they are to be left out.
pub(super) fn missing(
    accounts: &Accounts,
    names: &[AccountName],
    operation: &str,
    if_exists: bool,
) -> Result<LeftOut> {
    let missing: LeftOut = names
        .iter()
        .filter(|name| !accounts.contains_key(name))
        .cloned()
        .collect();
    match missing.is_empty() || if_exists {
        true => Ok(missing),
        false => Err(operation_failed(operation, &missing)),
    }
}

pub(super) fn operation_failed(operation: &str, names: &[AccountName]) -> SqlError {
    let names: Vec<String> = names.iter().map(AccountName::to_string).collect();
    SqlError::new(
        codes::CANNOT_USER,
        format!("Operation {operation} failed for {}", names.join(",")),
    )
}
