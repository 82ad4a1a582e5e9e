//! The endpoint for monitoring: `GET /metrics` in OpenMetrics text, `/health` and `/ready`.
//!
//! It reads counters alone and takes no lock that a statement holds while it runs. It knows no accounts and no TLS, so
//! it is off unless an address is given, which should be one that only the monitoring reaches. The same paths are
//! answered at the address of the console.
//!
//! Reference: <https://prometheus.io/docs/specs/om/open_metrics_spec/>

mod open_metrics;

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use sheaf_sql::Engine;

use crate::http::answer::Answer;
use crate::http::request::{Method, Request};
use crate::http::{Handler, HttpServer, Limits};

const LIMITS: Limits = Limits {
    name: "metrics",
    clients: 16,
    long_clients: 0,
    body_bytes: |_| 0,
    request_time: Duration::from_secs(2),
    answer_time: Duration::from_secs(5),
    stack_bytes: 2 << 20,
};

/// A server of metrics. It ends when it is dropped.
pub struct MetricsServer(HttpServer);

impl MetricsServer {
    /// Listens on an address; port 0 lets the system choose.
    pub fn start(engine: &Arc<Engine>, address: SocketAddr) -> io::Result<MetricsServer> {
        let monitoring = Arc::new(Monitoring(Arc::clone(engine)));
        HttpServer::start(address, LIMITS, monitoring).map(MetricsServer)
    }

    /// The address, with the port that the system chose if it was asked to.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

struct Monitoring(Arc<Engine>);

impl Handler for Monitoring {
    fn answer(&self, request: &Request, _client: &TcpStream) -> Answer {
        answer(&self.0, request)
            .unwrap_or_else(|| Answer::plain("404 Not Found", "try /metrics, /health or /ready\n"))
    }
}

/// `None`: the path is none for monitoring.
pub(crate) fn answer(engine: &Engine, request: &Request) -> Option<Answer> {
    let answer = match request.path.as_str() {
        "/metrics" => Answer::new(
            "200 OK",
            open_metrics::CONTENT_TYPE,
            open_metrics::text(&engine.metrics()).into_bytes(),
        ),
        "/health" => Answer::plain("200 OK", "ok\n"),
        "/ready" if engine.is_shutting_down() => {
            Answer::plain("503 Service Unavailable", "shutting down\n")
        }
        "/ready" => Answer::plain("200 OK", "ready\n"),
        _ => return None,
    };
    match request.method {
        Method::Get | Method::Head => Some(answer),
        Method::Post => Some(Answer::not_allowed()),
    }
}
