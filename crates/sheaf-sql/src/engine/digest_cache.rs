//! What is kept of the passwords of clients that have connected, so that the next proof of one needs no password.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sheaf_table::{Account, AccountName};

const SHA256_BYTES: usize = 32;

/// Digests that proofs of caching_sha2_password are checked with, of users that have connected since the start. Each
/// goes with the verifier that it was made for.
#[derive(Default)]
pub(crate) struct DigestCache(Mutex<BTreeMap<AccountName, (String, [u8; SHA256_BYTES])>>);

impl DigestCache {
    pub(crate) fn lock(
        &self,
    ) -> MutexGuard<'_, BTreeMap<AccountName, (String, [u8; SHA256_BYTES])>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn digest_of(&self, account: &Account) -> Option<[u8; SHA256_BYTES]> {
        let digests = self.lock();
        let (verifier, digest) = digests.get(&account.name)?;
        (*verifier == account.verifier).then_some(*digest)
    }
}
