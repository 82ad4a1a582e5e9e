//! sheaf-sql
