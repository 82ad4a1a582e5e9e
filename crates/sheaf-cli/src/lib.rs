//! What the program `sheaf` and the benchmarks share: a server as a command, sizes as people write them, and TPC-H.

pub mod serve;
pub mod size;
pub mod tpch;
