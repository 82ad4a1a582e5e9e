//! The I/O thread: it connects to the source, again and again, and puts events into the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sheaf_binlog::received::{Received, SourceEvent};
use sheaf_memory::Budget;

use super::link::{LinkError, LinkRequest, LinkStart, SourceLink, Stops};
use super::queue::Queued;
use super::state::{Connection, ThreadError, now_us};
use crate::engine::Engine;

/// Errors of MySQL's that only this thread has, as the client's numbers.
const CONNECTION_LOST: u16 = 2013;
const FATAL_OF_REPLICA: u16 = 13117;
const FATAL_OF_SOURCE: u16 = 13114;

/// A thread that sleeps looks so often whether it shall stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs until it is told to stop, or something is wrong that another attempt does not mend.
pub(super) fn receive(engine: &Arc<Engine>, stops: &Arc<AtomicBool>) {
    let replica = engine.replica();
    let mut attempts = 0;
    let stopped = || stops.load(Ordering::Acquire);
    while !stopped() {
        let outcome = receive_once(engine, stops, &mut attempts);
        replica.state.change(|known| {
            known.connection = Connection::None;
            known.received.give_up();
        });
        let Err(error) = outcome else {
            continue;
        };
        if stopped() {
            break;
        }
        attempts += 1;
        let Some(options) = replica.state.get().kept.map(|kept| kept.options) else {
            break;
        };
        let is_last = options.retry_count > 0 && attempts >= options.retry_count;
        let code = error.code;
        let message = match error.is_final {
            true => error.message.clone(),
            false => format!(
                "Error connecting to source '{}@{}:{}'. This was attempt {attempts}/{}, with a delay of {} seconds \
                 between attempts. Message: {}",
                options.user,
                options.host,
                options.port,
                options.retry_count,
                options.connect_retry,
                error.message
            ),
        };
        tracing::warn!(code, message, "the replica does not receive");
        replica.state.change(|known| {
            known.io_error = ThreadError::now(code, message);
            known.connection = Connection::Connecting;
        });
        if error.is_final || is_last {
            break;
        }
        let began = Instant::now();
        while !stopped() && began.elapsed() < Duration::from_secs(options.connect_retry) {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
    replica
        .state
        .change(|known| known.connection = Connection::None);
}

/// Connects, and receives until the connection ends. `Ok`: it is to be opened again at once.
fn receive_once(
    engine: &Arc<Engine>,
    stops: &Arc<AtomicBool>,
    attempts: &mut u64,
) -> Result<(), LinkError> {
    let replica = engine.replica();
    let stopped = || stops.load(Ordering::Acquire);
    let applies = || replica.applier.is_running();
    if !replica.queue.begin_receiving(&applies, &stopped) {
        return Ok(());
    }
    let known = replica.state.get();
    let globals = engine.globals();
    let Some(kept) = known.kept else {
        return Ok(());
    };
    replica
        .state
        .change(|known| known.connection = Connection::Connecting);
    let open_link = replica
        .open_link
        .get()
        .ok_or_else(|| fatal("there is no way to other servers"))?;
    let budget = engine.long_statements();
    let max_event_bytes = engine.longest_source_event();
    let executed = engine.executed_gtids();
    let request = LinkRequest {
        host: kept.options.host.clone(),
        port: kept.options.port,
        user: kept.options.user.clone(),
        password: known.password.0.clone(),
        get_public_key: kept.options.get_public_key,
        tls: kept.options.encrypts.then(|| kept.options.tls.clone()),
        start: match kept.options.auto_position {
            true => LinkStart::Gtids(executed),
            false => LinkStart::Place {
                file: kept.position.file.clone(),
                position: kept.position.position.max(super::source::FIRST_POSITION),
            },
        },
        server_id: globals.server_id(),
        server_uuid: engine.server_uuid(),
        heartbeat: Duration::from_millis(kept.options.heartbeat_ms),
        timeout: globals.replica_net_timeout(),
        max_event_bytes,
        stops: link_stops(engine, stops),
    };
    let Some(mut link) = open_link(&request)? else {
        return Ok(());
    };
    let identity = link.identity().clone();
    if identity.server_id == request.server_id {
        return Err(fatal(
            "The replica I/O thread stops because source and replica have equal MySQL server ids; these ids must be \
             different for replication to work (or the --replicate-same-server-id option must be used on replica but \
             this does not always make sense; please check the manual before using it).",
        ));
    }
    if !identity.server_uuid.is_empty() && identity.server_uuid == request.server_uuid {
        return Err(fatal(
            "The replica I/O thread stops because source and replica have equal MySQL server UUIDs; these UUIDs must \
             be different for replication to work.",
        ));
    }
    if identity.is_mariadb && kept.options.auto_position {
        return Err(fatal(
            "The replica I/O thread stops because SOURCE_AUTO_POSITION = 1 does not work with MariaDB",
        ));
    }
    tracing::info!(host = request.host, port = request.port, start = ?request.start, "the replica is connected");
    replica.state.change(|known| {
        known.connection = Connection::Connected;
        known.source_server_id = identity.server_id;
        known.source_uuid.clone_from(&identity.server_uuid);
        known.clock_ahead = identity.clock_ahead;
        known.io_error = ThreadError::default();
        known.read_file.clone_from(&kept.position.file);
        known.read_position = kept.position.position;
    });
    *attempts = 0;
    let outcome = pump(engine, link.as_mut(), stops, budget);
    // What is not complete is rolled back, and keeps no locks. If the applier has begun anew, it knows.
    let _ = replica
        .queue
        .push(Queued::Interrupted, usize::MAX, &stopped);
    outcome
}

/// A link ends when the thread is told to stop, and when the applier has begun anew.
fn link_stops(engine: &Arc<Engine>, stops: &Arc<AtomicBool>) -> Stops {
    let (engine, stops) = (Arc::clone(engine), Arc::clone(stops));
    Arc::new(move || stops.load(Ordering::Acquire) || engine.replica().queue.is_stale())
}

/// Receives events until there are no more.
fn pump(
    engine: &Arc<Engine>,
    link: &mut dyn SourceLink,
    stops: &Arc<AtomicBool>,
    budget: &Arc<Budget>,
) -> Result<(), LinkError> {
    let replica = engine.replica();
    let stopped = || stops.load(Ordering::Acquire) || replica.queue.is_stale();
    // What may wait for the applier.
    let limit = budget.limit_bytes() / 4;
    let (mut has_checksums, mut is_described) = (true, false);
    loop {
        let mut bytes = Vec::new();
        if !link.next_event(&mut bytes)? || stopped() {
            return Ok(());
        }
        let read = match SourceEvent::is_description(&bytes) {
            true => SourceEvent::description(&bytes),
            // The first event of all is made up, and comes before it is said whether there are checksums.
            false if !is_described => SourceEvent::new(&bytes, true).or_else(|| {
                has_checksums = false;
                SourceEvent::new(&bytes, false)
            }),
            false => SourceEvent::new(&bytes, has_checksums),
        };
        let is_stripped = !SourceEvent::is_description(&bytes) && has_checksums;
        let Some(event) = read else {
            return Err(LinkError {
                code: FATAL_OF_REPLICA,
                message: "Fatal error: an event was received that has not its checksum".into(),
                is_final: false,
            });
        };
        let Some(said) = event.read() else {
            return Err(fatal("an event was received that cannot be read"));
        };
        let mut is_for_applier = true;
        replica.state.change(|known| {
            match &said {
                Received::FormatDescription {
                    has_checksums: has, ..
                } => {
                    has_checksums = *has;
                    is_described = true;
                }
                Received::Rotate { file, position } => {
                    known.read_file.clone_from(file);
                    known.read_position = *position;
                }
                Received::Heartbeat => {
                    known.heartbeats += 1;
                    known.last_heartbeat_us = now_us();
                    is_for_applier = false;
                }
                Received::Gtid(Some(gtid)) => {
                    if !known.received.now.is_empty() {
                        known.received.end();
                    }
                    known.retrieved.add(*gtid);
                    let committed = u64::from(event.time()) * 1_000_000;
                    known.received.begin(gtid.to_string(), committed);
                }
                Received::Xid => known.received.end(),
                _ => {}
            }
            if event.end() != 0
                && !event.is_artificial()
                && !matches!(said, Received::Rotate { .. })
            {
                known.read_position = event.end().into();
            }
        });
        if !is_for_applier {
            continue;
        }
        if is_stripped {
            SourceEvent::strip_checksum(&mut bytes);
        }
        let share = loop {
            if let Some(share) = budget.try_take(bytes.len()) {
                break share;
            }
            if stopped() {
                return Ok(());
            }
            std::thread::sleep(LOOK_INTERVAL);
        };
        let item = Queued::Event {
            bytes,
            _share: share,
        };
        if !replica.queue.push(item, limit, &stopped) {
            return Ok(());
        }
    }
}

fn fatal(message: &str) -> LinkError {
    LinkError {
        code: FATAL_OF_REPLICA,
        message: format!("Fatal error: {message}"),
        is_final: true,
    }
}

impl LinkError {
    /// The connection has ended, or there was none.
    pub fn lost(message: impl Into<String>) -> LinkError {
        LinkError {
            code: CONNECTION_LOST,
            message: message.into(),
            is_final: false,
        }
    }

    /// The source has said that it does not send its log.
    pub fn refused_by_source(code: u16, message: &str) -> LinkError {
        LinkError {
            code: FATAL_OF_SOURCE,
            message: format!(
                "Got fatal error {code} from source when reading data from binary log: '{message}'"
            ),
            is_final: true,
        }
    }

    /// Something that no other attempt mends.
    pub fn fatal(message: &str) -> LinkError {
        fatal(message)
    }
}
