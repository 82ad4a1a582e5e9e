//! sheaf-optimizer
