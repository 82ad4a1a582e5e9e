//! A value that the calls of a statement share until it ends, such as compiled patterns.
//!
//! ```text
//!   row 1 -> call -> made    row 2 -> call -> found    ...    end of the statement: dropped
//! ```
//!
//! A direct plan calls a kernel for each row, and workers call it at the same time. What takes long to make is made
//! once, and counts as the statement's memory.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Value = Arc<dyn Any + Send + Sync>;

/// See the module's comment.
#[derive(Default)]
pub struct SharedValue {
    is_made: AtomicBool,
    value: Mutex<Option<Value>>,
}

impl SharedValue {
    fn value(&self) -> MutexGuard<'_, Option<Value>> {
        // Each change is a single assignment.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The statement's value, which is made if there is none of this type.
    pub fn get<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut value = self.value();
        let known = value.clone().and_then(|value| value.downcast().ok());
        known.unwrap_or_else(|| {
            let made = Arc::new(T::default());
            *value = Some(Arc::clone(&made) as Value);
            self.is_made.store(true, Ordering::Relaxed);
            made
        })
    }

    /// The statement ends.
    pub(crate) fn end(&self) {
        if self.is_made.swap(false, Ordering::Relaxed) {
            self.value().take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shared_until_the_statement_ends() {
        let shared = SharedValue::default();
        *shared.get::<Mutex<u32>>().lock().unwrap() = 7;
        assert_eq!(*shared.get::<Mutex<u32>>().lock().unwrap(), 7);
        shared.end();
        assert_eq!(*shared.get::<Mutex<u32>>().lock().unwrap(), 0);
    }
}
