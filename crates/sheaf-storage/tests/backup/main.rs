//! Backup, archive and restore on the simulated disk, against models of all committed states.
//!
//! One thread does everything, so a run is a function of its seed: what others do during a backup is done when the
//! backup reports its progress.

#[path = "../common/mod.rs"]
mod common;

mod archive;
mod copies;
mod refused;
mod writer;
