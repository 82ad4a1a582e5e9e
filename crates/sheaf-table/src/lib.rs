//! sheaf-table
