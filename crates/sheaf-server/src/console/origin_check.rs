//! Which requests come from the console's own page.
//!
//! A page of somebody else in the same browser can send requests here. A name of its own that resolves to this machine
//! (DNS rebinding) would even make it the same origin, so a Host that is no name of this machine is refused. What
//! changes something is taken only as JSON, which other origins cannot send unasked, and not where the browser says
//! that it comes from another site. The token and the cookie (see `login.rs`) are asked for besides.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::http::answer::Answer;
use crate::http::request::{Method, Request};

const JSON: &str = "application/json";

/// Refuses what does not come from the page.
pub(super) fn check(request: &Request) -> Result<(), Answer> {
    let host = request.header("host").unwrap_or_default();
    if !is_this_machine(host) {
        return Err(Answer::plain(
            "421 Misdirected Request",
            "the console is reached as localhost or by an address of this machine\n",
        ));
    }
    if request.method != Method::Post {
        return Ok(());
    }
    let content_type = request.header("content-type").unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    if !content_type.eq_ignore_ascii_case(JSON) {
        return Err(Answer::plain(
            "415 Unsupported Media Type",
            "the body is to be application/json\n",
        ));
    }
    let is_own = match request.header("sec-fetch-site") {
        Some(site) => site == "same-origin",
        // Old browsers say the origin only, and others than browsers nothing.
        None => request
            .header("origin")
            .is_none_or(|origin| authority_of(origin) == Some(host)),
    };
    match is_own {
        true => Ok(()),
        false => Err(Answer::plain(
            "403 Forbidden",
            "the request comes from another site\n",
        )),
    }
}

fn authority_of(origin: &str) -> Option<&str> {
    origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))
}

/// Whether a Host is `localhost` or a loopback address. The port may be that of a tunnel.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if port.is_empty() || is_port(port) => {
                return address
                    .parse()
                    .is_ok_and(|address: Ipv6Addr| address.is_loopback());
            }
            _ => return false,
        },
        None => match host.split_once(':') {
            Some((name, _)) if !is_port(&host[name.len()..]) => return false,
            Some((name, _)) => name,
            None => host,
        },
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse()
            .is_ok_and(|address: Ipv4Addr| address.is_loopback())
}

fn is_port(text: &str) -> bool {
    text.strip_prefix(':')
        .is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_of_this_machine() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.9.8.7:65535",
            "[::1]",
            "[::1]:8080",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:http",
            "localhost:",
            "localhost:1:2",
            "127.1",
            "2130706433",
            "10.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::1",
            "[::1]x",
            "[127.0.0.1]",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
