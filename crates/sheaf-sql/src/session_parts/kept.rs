//! What a session keeps for a floor above it, without knowing what it is.
//!
//! Direct plans are such: they refer to the code that runs them, and that code works on sessions. The session only
//! forgets them, when it starts over.

use std::any::Any;

/// A place for a value of one type, which the floor above knows.
#[derive(Default)]
pub(crate) struct Kept(Option<Box<dyn Any + Send + Sync>>);

impl Kept {
    /// Takes the value out; `None` if there is none.
    pub(crate) fn take_kept<T: Any + Send + Sync>(&mut self) -> Option<Box<T>> {
        self.0.take().and_then(|kept| kept.downcast().ok())
    }

    /// Takes the value out, or a new one if there is none.
    pub(crate) fn take<T: Any + Default + Send + Sync>(&mut self) -> Box<T> {
        self.take_kept().unwrap_or_default()
    }

    pub(crate) fn put<T: Any + Send + Sync>(&mut self, value: Box<T>) {
        self.0 = Some(value);
    }

    /// Works on the value, or on a new one if there is none.
    pub(crate) fn with<T: Any + Default + Send + Sync, R>(
        &mut self,
        work: impl FnOnce(&mut T) -> R,
    ) -> R {
        let mut value = self.take();
        let done = work(&mut value);
        self.put(value);
        done
    }

    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_until_it_is_taken_or_forgotten() {
        let mut kept = Kept::default();
        assert!(kept.take_kept::<String>().is_none());
        kept.with(|text: &mut String| text.push('a'));
        kept.with(|text: &mut String| text.push('b'));
        assert_eq!(*kept.take::<String>(), "ab");
        assert_eq!(*kept.take::<String>(), "");
        kept.put(Box::new(7));
        kept.forget();
        assert!(kept.take_kept::<i32>().is_none());
    }
}
