//! What a client gets.

use std::borrow::Cow;
use std::fmt::Write;

pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    content_type: &'static str,
    /// Besides those that every answer has.
    headers: Vec<(&'static str, Cow<'static, str>)>,
    body: Cow<'static, [u8]>,
    /// Not for HEAD.
    pub(super) has_body: bool,
}

impl Answer {
    pub(crate) fn new(
        status: &'static str,
        content_type: &'static str,
        body: impl Into<Cow<'static, [u8]>>,
    ) -> Answer {
        Answer {
            status,
            content_type,
            headers: Vec::new(),
            body: body.into(),
            has_body: true,
        }
    }

    pub(crate) fn plain(status: &'static str, text: &'static str) -> Answer {
        Answer::new(status, PLAIN, text.as_bytes())
    }

    pub(crate) fn with(
        mut self,
        name: &'static str,
        value: impl Into<Cow<'static, str>>,
    ) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn bad_request(what: &'static str) -> Answer {
        Answer::plain("400 Bad Request", what)
    }

    pub(crate) fn not_allowed() -> Answer {
        Answer::plain(
            "405 Method Not Allowed",
            "this path does not take this method\n",
        )
    }

    pub(super) fn busy() -> Answer {
        Answer::plain("503 Service Unavailable", "too many clients\n")
    }

    pub(super) fn long_head() -> Answer {
        Answer::plain(
            "431 Request Header Fields Too Large",
            "the request is too long\n",
        )
    }

    pub(super) fn long_body() -> Answer {
        Answer::plain("413 Content Too Large", "the body is too long\n")
    }

    /// As it is sent. The connection is closed behind it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n",
            self.status,
            self.content_type,
            self.body.len()
        );
        for (name, value) in &self.headers {
            // A text takes whatever is written to it.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("Connection: close\r\n\r\n");
        let mut bytes = head.into_bytes();
        if self.has_body {
            bytes.extend_from_slice(&self.body);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_say_how_long_they_are() {
        let mut answer = Answer::plain("200 OK", "ok\n").with("X-A", "b");
        let text = |answer: &Answer| String::from_utf8(answer.bytes()).expect("a text");
        assert!(text(&answer).ends_with(
            "Content-Length: 3\r\nCache-Control: no-store\r\nX-A: b\r\nConnection: close\r\n\r\nok\n"
        ));
        answer.has_body = false;
        assert!(text(&answer).ends_with("\r\n\r\n"));
    }
}
