//! Our binary log against MySQL's.
//!
//! | file | what it compares |
//! |---|---|
//! | `cases` | tables of every type with their rows, as values and as SQL |
//! | `golden` | a file that MySQL 9.7 wrote, byte by byte, with ours of the same statements |
//! | `decoded` | values that mysql_common reads, with those that were written |
//! | `recovered` | what is found of files that were cut or damaged |
//! | `programs` | what `mysqlbinlog` and `mariadb-binlog` say of a file of ours |

mod cases;
mod decoded;
mod golden;
mod programs;
mod recovered;
