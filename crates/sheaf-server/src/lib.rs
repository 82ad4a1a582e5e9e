//! sheaf-server
