//! Our binary log against MySQL's.
//!
//! | file | what it compares |
//! |---|---|
//! | `cases` | tables of every type with their rows, as values and as SQL |
//! | `script` | statements about them, with what is logged of each |
//! | `golden` | a file that MySQL 9.7 wrote, byte by byte, with ours of the same statements |
//! | `reader` | what `golden` takes of MySQL's file |
//! | `refused` | values and tables that the log cannot have |
//! | `recovered` | what is found of files that were cut or damaged |
//! | `programs` | what `mysqlbinlog` and `mariadb-binlog` say of a file of ours |

mod cases;
mod golden;
mod programs;
mod reader;
mod recovered;
mod refused;
mod script;
