//! sheaf-access
