//! What the running statement says to followers of changes: in the transaction that changes the catalog, so that
//! both come about or neither does.

use std::cell::RefCell;

thread_local! {
    /// What the next change of the catalog on this thread says.
    static ANNOTATION: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Puts back what was to be said before, however the work ends.
struct Earlier(Option<Vec<u8>>);

impl Drop for Earlier {
    fn drop(&mut self) {
        put_back(self.0.take());
    }
}

/// Does work in which the first change of the catalog, if there is one, has this
/// [annotation](sheaf_storage::Transaction::annotate).
pub fn annotated<T>(annotation: Vec<u8>, work: impl FnOnce() -> T) -> T {
    let _earlier = Earlier(ANNOTATION.replace(Some(annotation)));
    work()
}

pub(super) fn take() -> Option<Vec<u8>> {
    ANNOTATION.take()
}

pub(super) fn put_back(annotation: Option<Vec<u8>>) {
    ANNOTATION.set(annotation);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_said_once_and_only_in_its_work() {
        annotated(b"outer".to_vec(), || {
            annotated(b"inner".to_vec(), || {
                assert_eq!(take(), Some(b"inner".to_vec()))
            });
            let said = take();
            assert_eq!(said, Some(b"outer".to_vec()));
            assert_eq!(take(), None);
            put_back(said);
        });
        assert_eq!(take(), None);
    }
}
