//! sheaf-storage
