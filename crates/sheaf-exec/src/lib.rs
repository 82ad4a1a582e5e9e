//! sheaf-exec
