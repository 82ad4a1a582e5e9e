//! Requests, of which only `GET` and `HEAD` of three paths are answered.

use sheaf_sql::Engine;

use super::open_metrics;

/// The request line and the headers, in bytes.
pub(super) const MAX_REQUEST_BYTES: usize = 8 << 10;
const MAX_HEADERS: usize = 64;

/// What has come so far.
pub(super) enum Progress {
    Complete(Request),
    Incomplete,
    Wrong(Answer),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    path: String,
    /// HEAD: the answer has no body.
    is_head: bool,
}

/// What a client gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: String,
    has_body: bool,
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// Reads what a client has sent.
pub(super) fn read(bytes: &[u8]) -> Progress {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => Progress::Incomplete,
        Ok(httparse::Status::Complete(_)) => match request.method {
            Some(method @ ("GET" | "HEAD")) => {
                let path = request.path.unwrap_or_default();
                let path = path.split('?').next().unwrap_or_default();
                Progress::Complete(Request {
                    path: path.to_string(),
                    is_head: method == "HEAD",
                })
            }
            _ => Progress::Wrong(Answer::plain(
                "405 Method Not Allowed",
                "only GET and HEAD\n",
            )),
        },
        Err(httparse::Error::TooManyHeaders) => Progress::Wrong(Answer::too_long()),
        Err(_) => Progress::Wrong(Answer::plain("400 Bad Request", "this is no HTTP/1.1\n")),
    }
}

impl Request {
    pub(super) fn answer(&self, engine: &Engine) -> Answer {
        let mut answer = match self.path.as_str() {
            "/metrics" => Answer {
                content_type: open_metrics::CONTENT_TYPE,
                ..Answer::plain("200 OK", &open_metrics::text(&engine.metrics()))
            },
            "/health" => Answer::plain("200 OK", "ok\n"),
            "/ready" if engine.is_shutting_down() => {
                Answer::plain("503 Service Unavailable", "shutting down\n")
            }
            "/ready" => Answer::plain("200 OK", "ready\n"),
            _ => Answer::plain("404 Not Found", "try /metrics, /health or /ready\n"),
        };
        answer.has_body = !self.is_head;
        answer
    }
}

impl Answer {
    fn plain(status: &'static str, body: &str) -> Answer {
        Answer {
            status,
            content_type: PLAIN,
            body: body.to_string(),
            has_body: true,
        }
    }

    pub(super) fn busy() -> Answer {
        Answer::plain("503 Service Unavailable", "too many clients\n")
    }

    pub(super) fn too_long() -> Answer {
        Answer::plain(
            "431 Request Header Fields Too Large",
            "the request is too long\n",
        )
    }

    /// As it is sent. The connection is closed behind it.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let Answer {
            status,
            content_type,
            body,
            has_body,
        } = self;
        let length = body.len();
        let shown = if *has_body { body } else { "" };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\nConnection: close\r\n\r\n{shown}"
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_come() {
        let whole = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..whole.len() {
            assert!(matches!(read(&whole[..end]), Progress::Incomplete), "{end}");
        }
        let Progress::Complete(request) = read(whole) else {
            panic!("it is complete");
        };
        assert_eq!(
            (request.path.as_str(), request.is_head),
            ("/metrics", false)
        );
    }

    #[test]
    fn what_is_no_request_is_told_so() {
        for (bytes, status) in [
            (&b"POST / HTTP/1.1\r\n\r\n"[..], "405"),
            (b"\x4a\x00\x00\x00\x0a", "400"),
            (b"GET / HTTP/1.1\r\n bad\x00header\r\n\r\n", "400"),
        ] {
            let Progress::Wrong(answer) = read(bytes) else {
                panic!("{status}");
            };
            assert!(answer.status.starts_with(status), "{answer:?}");
        }
        let many = format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(MAX_HEADERS + 1)
        );
        let Progress::Wrong(answer) = read(many.as_bytes()) else {
            panic!("too many headers");
        };
        assert!(answer.status.starts_with("431"));
    }

    #[test]
    fn answers_say_how_long_they_are() {
        let mut answer = Answer::plain("200 OK", "ok\n");
        let text = |answer: &Answer| String::from_utf8(answer.bytes()).expect("a text");
        assert!(text(&answer).ends_with(
            "Content-Length: 3\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nok\n"
        ));
        answer.has_body = false;
        assert!(text(&answer).ends_with("\r\n\r\n"));
    }
}
