//! GET_LOCK and its relatives: locks by name, which the server has and sessions hold.
//!
//! ```text
//!   GET_LOCK(name, seconds)    1, or 0 if another session keeps it for so long; for ever if negative
//!   RELEASE_LOCK(name)         1, 0 if it is another session's, NULL if nobody's
//!   RELEASE_ALL_LOCKS()        how often the session had taken what it held
//!   IS_FREE_LOCK(name)         1 or 0
//!   IS_USED_LOCK(name)         the connection of the session that holds it
//! ```
//!
//! How they are held and waited for is told in `sheaf-table/src/lock/user_lock.rs`. Each row of a query evaluates them.
//! A wait holds no worker thread. KILL, a time limit and a client that has gone end it with the statement's error.

use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray, UInt64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{DataFusionError, Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sheaf_access::{AccessError, CancelFlag};
use sheaf_exec::blocking::blocking;
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::functions::conversion::to_text;
use sheaf_table::{MAX_USER_LOCKS, UserLockError, UserLocks};
use sheaf_types::error::codes;

/// The longest name of a lock, in characters.
const MAX_NAME_CHARACTERS: usize = 64;

/// What SHOW PROCESSLIST says of a session that waits.
const WAITS: &str = "User lock";
const GOES_ON: &str = "executing";

/// The locks of the server, as one session uses them. Cloning shares them.
#[derive(Clone)]
pub struct SessionLocks {
    locks: Arc<UserLocks>,
    session: u64,
    show_state: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Default for SessionLocks {
    fn default() -> Self {
        Self::new(Arc::default(), 0, Arc::new(|_| ()))
    }
}

impl fmt::Debug for SessionLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "locks of session {}", self.session)
    }
}

impl SessionLocks {
    /// `show_state`: tells others what the session does.
    pub fn new(
        locks: Arc<UserLocks>,
        session: u64,
        show_state: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> SessionLocks {
        SessionLocks {
            locks,
            session,
            show_state,
        }
    }

    /// Releases what the session holds.
    pub fn release_all(&self) -> u64 {
        self.locks.release_all(self.session)
    }

    /// Whether the session holds any, so that others may wait for it.
    pub fn are_held(&self) -> bool {
        self.locks.are_held_by(self.session)
    }

    /// The function of this (lower-case) name, if it is one of these. `cancel`: raised when the statement shall end.
    /// The arguments are a name and a BIGINT.
    pub fn function(&self, name: &str, cancel: CancelFlag) -> Option<LockFunction> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name)?;
        let arguments = kind.arguments();
        Some(LockFunction {
            arguments,
            function: Arc::new(ScalarUDF::from(OfLocks {
                kind,
                locks: self.clone(),
                cancel,
                signature: match arguments {
                    0 => Signature::nullary(Volatility::Volatile),
                    count => Signature::any(count, Volatility::Volatile),
                },
            })),
        })
    }

    fn take(&self, name: &str, seconds: i64, cancel: &CancelFlag) -> Result<bool> {
        let wait = u64::try_from(seconds).ok().map(Duration::from_secs);
        let is_interrupted = || cancel.is_cancelled();
        let has_waited = Cell::new(false);
        let waits = || {
            has_waited.set(true);
            (self.show_state)(WAITS);
        };
        let taken = self
            .locks
            .take(name, self.session, wait, &waits, &is_interrupted);
        if has_waited.get() {
            (self.show_state)(GOES_ON);
        }
        match taken {
            Ok(()) => Ok(true),
            Err(UserLockError::TimedOut) => Ok(false),
            Err(UserLockError::Deadlock) => Err(deadlock().into()),
            Err(UserLockError::TooMany) => Err(too_many().into()),
            Err(UserLockError::Interrupted) => {
                Err(DataFusionError::External(Box::new(AccessError::Cancelled)))
            }
        }
    }
}

/// A function that a statement calls.
pub struct LockFunction {
    pub function: Arc<ScalarUDF>,
    /// So many it takes.
    pub arguments: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Get,
    Release,
    ReleaseAll,
    IsFree,
    IsUsed,
}

impl Kind {
    const ALL: [Kind; 5] = [
        Kind::Get,
        Kind::Release,
        Kind::ReleaseAll,
        Kind::IsFree,
        Kind::IsUsed,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Get => "get_lock",
            Kind::Release => "release_lock",
            Kind::ReleaseAll => "release_all_locks",
            Kind::IsFree => "is_free_lock",
            Kind::IsUsed => "is_used_lock",
        }
    }

    fn arguments(self) -> usize {
        match self {
            Kind::Get => 2,
            Kind::ReleaseAll => 0,
            Kind::Release | Kind::IsFree | Kind::IsUsed => 1,
        }
    }

    fn returns(self) -> DataType {
        match self {
            Kind::Get | Kind::Release | Kind::IsFree => DataType::Int64,
            Kind::ReleaseAll | Kind::IsUsed => DataType::UInt64,
        }
    }
}

/// Whether the function of this (lower-case) name takes, releases or tells of locks by name.
pub fn is_lock_function(name: &str) -> bool {
    Kind::ALL.into_iter().any(|kind| kind.name() == name)
}

#[derive(Debug)]
struct OfLocks {
    kind: Kind,
    locks: SessionLocks,
    cancel: CancelFlag,
    signature: Signature,
}

/// There is one session in a plan.
impl PartialEq for OfLocks {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.locks.session == other.locks.session
    }
}

impl Eq for OfLocks {}

impl Hash for OfLocks {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl OfLocks {
    fn compute(&self, arguments: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let rows = arguments.number_rows;
        let SessionLocks { locks, session, .. } = &self.locks;
        if self.kind == Kind::ReleaseAll {
            let released = (0..rows).map(|_| self.locks.release_all());
            return Ok(Arc::new(released.collect::<UInt64Array>()));
        }
        let names = Names::of(arguments)?;
        let number = |is: bool| Some(i64::from(is));
        Ok(match self.kind {
            Kind::Get => {
                let Some(value) = arguments.args.get(1) else {
                    return exec_err!("GET_LOCK without its second argument");
                };
                let seconds = value.to_array(rows)?;
                let Some(seconds) = seconds.as_primitive_opt::<Int64Type>() else {
                    return exec_err!("GET_LOCK for a {}", seconds.data_type());
                };
                let taken = (0..rows).map(|row| {
                    let seconds = match seconds.is_valid(row) {
                        true => seconds.value(row),
                        false => 0,
                    };
                    let taken = self.locks.take(&names.name(row)?, seconds, &self.cancel);
                    taken.map(number)
                });
                Arc::new(taken.collect::<Result<Int64Array>>()?)
            }
            Kind::Release => {
                let released = (0..rows).map(|row| {
                    let released = locks.release(&names.name(row)?, *session);
                    Ok(released.and_then(number))
                });
                Arc::new(released.collect::<Result<Int64Array>>()?)
            }
            Kind::IsFree => {
                let is_free =
                    (0..rows).map(|row| Ok(number(locks.holder(&names.name(row)?).is_none())));
                Arc::new(is_free.collect::<Result<Int64Array>>()?)
            }
            Kind::IsUsed | Kind::ReleaseAll => {
                let holders = (0..rows).map(|row| Ok(locks.holder(&names.name(row)?)));
                Arc::new(holders.collect::<Result<UInt64Array>>()?)
            }
        })
    }
}

/// The first argument.
struct Names(StringViewArray);

impl Names {
    fn of(arguments: &ScalarFunctionArgs) -> Result<Names> {
        let (Some(value), Some(field)) = (arguments.args.first(), arguments.arg_fields.first())
        else {
            return exec_err!("a lock without a name");
        };
        let array = value.to_array(arguments.number_rows)?;
        Ok(Names(to_text(&array, field)?))
    }

    /// As it is compared: names that differ in case are the same.
    ///
    /// # Errors
    /// 3057 for one that is empty or NULL, 4163 for one that is too long.
    fn name(&self, row: usize) -> Result<String> {
        let name = self.0.is_valid(row).then(|| self.0.value(row));
        match name {
            None | Some("") => Err(wrong_name(name.unwrap_or("NULL")).into()),
            Some(name) if name.chars().nth(MAX_NAME_CHARACTERS).is_some() => {
                Err(overlong_name(name).into())
            }
            Some(name) => Ok(name.to_lowercase()),
        }
    }
}

fn wrong_name(name: &str) -> EvaluationError {
    EvaluationError::new(
        codes::USER_LOCK_WRONG_NAME,
        format!(
            "Incorrect user-level lock name '{name}'. The name is empty, NULL, or can not be expressed in the current \
             character-set."
        ),
    )
}

fn overlong_name(name: &str) -> EvaluationError {
    /// Of a name in the message.
    const MAX_SHOWN_CHARACTERS: usize = 256;
    let shown: String = name.chars().take(MAX_SHOWN_CHARACTERS).collect();
    EvaluationError::new(
        codes::USER_LOCK_OVERLONG_NAME,
        format!(
            "User-level lock name '{shown}' should not exceed {MAX_NAME_CHARACTERS} characters."
        ),
    )
}

fn deadlock() -> EvaluationError {
    EvaluationError::new(
        codes::USER_LOCK_DEADLOCK,
        "Deadlock found when trying to get user-level lock; try rolling back transaction/releasing locks and \
         restarting lock acquisition.",
    )
}

fn too_many() -> EvaluationError {
    EvaluationError::new(
        codes::OUT_OF_RESOURCES,
        format!(
            "Out of memory; sessions hold {MAX_USER_LOCKS} locks by name, and there are no more; release some"
        ),
    )
}

impl ScalarUDFImpl for OfLocks {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.kind.returns())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.kind != Kind::ReleaseAll;
        Ok(Arc::new(Field::new(
            self.name(),
            self.kind.returns(),
            nullable,
        )))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        blocking(|| self.compute(&arguments)).map(ColumnarValue::Array)
    }
}
