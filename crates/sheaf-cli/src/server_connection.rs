//! How commands of the program connect to a server.

use std::error::Error;
use std::path::Path;

use mysql::{Conn, OptsBuilder};

/// The password that options give, or the environment.
pub fn password(
    given: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<String>, Box<dyn Error>> {
    if let Some(path) = file {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(Some(text.lines().next().unwrap_or_default().to_string()));
    }
    let given = given.map(str::to_string);
    Ok(given.or_else(|| std::env::var("MYSQL_PWD").ok()))
}

/// Connects to a server, such as 127.0.0.1:3306.
pub fn connect(server: &str, user: &str, password: Option<&str>) -> Result<Conn, Box<dyn Error>> {
    let (host, port) = server
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)))
        .ok_or_else(|| format!("'{server}' is not an address such as 127.0.0.1:3306"))?;
    Ok(Conn::new(
        OptsBuilder::new()
            .ip_or_hostname(Some(host))
            .tcp_port(port)
            .user(Some(user))
            .pass(password)
            .prefer_socket(false),
    )?)
}

/// A string as SQL writes it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}
