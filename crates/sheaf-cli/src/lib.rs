//! What the program `sheaf` and the benchmarks share: a server as a command, where its options come from, sizes as
//! people write them, and TPC-H.

pub mod configuration;
pub mod serve;
pub mod size;
pub mod tpch;
