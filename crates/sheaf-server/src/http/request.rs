//! Requests, as they come in pieces.
//!
//! A body has a length in front of it. One in chunks is refused, since a request of some kilobytes does not need them.
//! What a server and something in front of it could understand in two ways is refused, too: two lengths, two hosts.

use super::answer::Answer;

/// The request line and the headers, in bytes.
const MAX_HEAD_BYTES: usize = 8 << 10;
const MAX_HEADERS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    /// GET, but that the answer has no body.
    Head,
    Post,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Without what stands behind a question mark.
    pub(crate) path: String,
    /// Names are in small letters.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The value of a header; the name in small letters.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    fn count(&self, name: &str) -> usize {
        let all = self.headers.iter();
        all.filter(|(known, _)| known == name).count()
    }

    /// The length of the body that follows.
    fn body_bytes(&self, limit: usize) -> Result<usize, Answer> {
        if self.header("transfer-encoding").is_some() {
            return Err(Answer::plain(
                "501 Not Implemented",
                "a body needs a Content-Length\n",
            ));
        }
        if self.count("content-length") > 1 || self.count("host") > 1 {
            return Err(Answer::bad_request("a header is there twice\n"));
        }
        let Some(length) = self.header("content-length") else {
            return match self.method {
                Method::Post => Err(Answer::plain(
                    "411 Length Required",
                    "a body needs a Content-Length\n",
                )),
                _ => Ok(0),
            };
        };
        let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(Answer::bad_request("Content-Length is no number\n"));
        }
        match length.parse() {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(Answer::long_body()),
        }
    }
}

/// What has come so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Complete(Request),
    Incomplete,
    Wrong(Answer),
}

/// A request on its way in.
pub(super) struct Incoming {
    max_body_bytes: fn(&str) -> usize,
    bytes: Vec<u8>,
    /// The request without its body, where that begins, and where it ends.
    head: Option<(Request, usize, usize)>,
}

impl Incoming {
    pub(super) fn new(max_body_bytes: fn(&str) -> usize) -> Incoming {
        Incoming {
            max_body_bytes,
            bytes: Vec::new(),
            head: None,
        }
    }

    /// The next bytes that have come.
    pub(super) fn push(&mut self, piece: &[u8]) -> Progress {
        self.bytes.extend_from_slice(piece);
        if self.head.is_none() {
            match self.read_head() {
                Ok(true) => {}
                Ok(false) if self.bytes.len() > MAX_HEAD_BYTES => {
                    return Progress::Wrong(Answer::long_head());
                }
                Ok(false) => return Progress::Incomplete,
                Err(answer) => return Progress::Wrong(answer),
            }
        }
        match self.head.take() {
            Some((mut request, start, end)) if self.bytes.len() >= end => {
                request.body = self.bytes[start..end].to_vec();
                Progress::Complete(request)
            }
            head => {
                self.head = head;
                Progress::Incomplete
            }
        }
    }

    /// Whether the head is complete.
    fn read_head(&mut self) -> Result<bool, Answer> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let start = match parsed.parse(&self.bytes) {
            Ok(httparse::Status::Partial) => return Ok(false),
            Ok(httparse::Status::Complete(start)) if start > MAX_HEAD_BYTES => {
                return Err(Answer::long_head());
            }
            Ok(httparse::Status::Complete(start)) => start,
            Err(httparse::Error::TooManyHeaders) => return Err(Answer::long_head()),
            Err(_) => return Err(Answer::bad_request("this is no HTTP/1.1\n")),
        };
        let path = parsed.path.unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default().to_string();
        let max_body_bytes = (self.max_body_bytes)(&path);
        let method = match parsed.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            Some("POST") if max_body_bytes > 0 => Method::Post,
            _ => return Err(Answer::not_allowed()),
        };
        let headers = parsed.headers.iter().map(|header| {
            let value = String::from_utf8_lossy(header.value).trim().to_string();
            (header.name.to_ascii_lowercase(), value)
        });
        let request = Request {
            method,
            path,
            headers: headers.collect(),
            body: Vec::new(),
        };
        let end = start + request.body_bytes(max_body_bytes)?;
        self.head = Some((request, start, end));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_BODY_BYTES: usize = 16;

    fn read(bytes: &[u8]) -> Progress {
        Incoming::new(|_| MAX_BODY_BYTES).push(bytes)
    }

    #[test]
    fn requests_are_read_as_they_come() {
        let whole = b"POST /a?x=1 HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\nxyz";
        for end in 0..whole.len() {
            assert_eq!(read(&whole[..end]), Progress::Incomplete, "{end}");
        }
        let mut incoming = Incoming::new(|_| MAX_BODY_BYTES);
        let (last, others) = whole.split_last().expect("some bytes");
        for byte in others {
            assert_eq!(incoming.push(&[*byte]), Progress::Incomplete);
        }
        let Progress::Complete(request) = incoming.push(&[*last]) else {
            panic!("it is complete");
        };
        assert_eq!(
            (request.path.as_str(), request.method),
            ("/a", Method::Post)
        );
        assert_eq!(request.header("host"), Some("b"));
        assert_eq!(request.header("cookie"), None);
        assert_eq!(request.body, b"xyz");
    }

    #[test]
    fn what_is_no_request_is_told_so() {
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(MAX_HEADERS + 1)
        );
        let long = format!("GET / HTTP/1.1\r\na: {}", "x".repeat(MAX_HEAD_BYTES));
        for (bytes, status) in [
            ("PUT / HTTP/1.1\r\n\r\n", "405"),
            ("\x4a\x00\x00\x00\x0a", "400"),
            ("GET / HTTP/1.1\r\n bad\x00header\r\n\r\n", "400"),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
            ("POST / HTTP/1.1\r\n\r\n", "411"),
            ("POST / HTTP/1.1\r\nContent-Length: 17\r\n\r\n", "413"),
            (
                "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                "413",
            ),
            ("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"),
            ("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", "400"),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                "400",
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "501",
            ),
            (many.as_str(), "431"),
            (long.as_str(), "431"),
        ] {
            let Progress::Wrong(answer) = read(bytes.as_bytes()) else {
                panic!("{bytes}");
            };
            assert!(answer.status.starts_with(status), "{bytes}: {answer:?}");
        }
        let without_bodies = Incoming::new(|_| 0).push(b"POST / HTTP/1.1\r\n\r\n");
        assert_eq!(without_bodies, Progress::Wrong(Answer::not_allowed()));
        let by_path = |path: &str| {
            let limit = |path: &str| if path == "/long" { 3 } else { 2 };
            let head = format!("POST {path} HTTP/1.1\r\nContent-Length: 3\r\n\r\n");
            Incoming::new(limit).push(head.as_bytes())
        };
        assert_eq!(by_path("/long?a"), Progress::Incomplete);
        assert_eq!(by_path("/short"), Progress::Wrong(Answer::long_body()));
    }
}
