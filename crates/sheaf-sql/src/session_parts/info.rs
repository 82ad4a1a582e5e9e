//! What is known of a client when its session begins.

use sheaf_table::AccountName;

/// What a client and the server have agreed on to encrypt their connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// `TLSv1.3`
    pub version: &'static str,
    /// `TLS_AES_256_GCM_SHA384`
    pub cipher: String,
}

/// The user that connects, and what the client said that it can do.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub user: String,
    /// The client's address without its port, or `localhost`.
    pub host: String,
    /// The account whose rights the session has. `None`: it may do everything, as the program that opened the database
    /// may.
    pub account: Option<AccountName>,
    /// The database to start in.
    pub database: Option<String>,
    /// Several statements in one request, separated by semicolons (CLIENT_MULTI_STATEMENTS).
    pub multi_statements: bool,
    /// The client can send files (CLIENT_LOCAL_FILES).
    pub local_infile: bool,
    /// Affected rows of UPDATE are the rows found (CLIENT_FOUND_ROWS).
    pub found_rows: bool,
    /// Spaces may stand behind the names of functions (CLIENT_IGNORE_SPACE).
    pub ignore_space: bool,
    /// TLS, if the connection has it.
    pub encryption: Option<Encryption>,
    /// The connection uses the compressed protocol.
    pub compressed: bool,
    /// The connection's character set and collation, a MySQL collation id (255 is utf8mb4_0900_ai_ci).
    pub collation_id: u16,
}

impl Default for SessionInfo {
    fn default() -> Self {
        SessionInfo {
            user: "root".into(),
            host: "localhost".into(),
            account: None,
            database: None,
            multi_statements: false,
            local_infile: true,
            found_rows: false,
            ignore_space: false,
            encryption: None,
            compressed: false,
            collation_id: 255,
        }
    }
}
