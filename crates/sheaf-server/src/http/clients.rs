//! The clients that are served, of which there are few.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Clients at the same time. One that comes when there are so many takes the place of the oldest.
const MAX_CLIENTS: usize = 16;
/// Threads of clients that have a place, and of those that have lost theirs and are about to end.
const MAX_THREADS: usize = 2 * MAX_CLIENTS;
/// A client waits so long for one of the latter to end.
const ROOM_WAIT: Duration = Duration::from_millis(200);

/// See the module's comment.
#[derive(Default)]
pub(super) struct Clients {
    state: Mutex<State>,
    thread_ended: Condvar,
}

#[derive(Default)]
struct State {
    /// By age, the oldest first; each with a number of its own.
    places: VecDeque<(u64, TcpStream)>,
    next_number: u64,
    threads: usize,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one of them, until it is dropped.
pub(super) struct Place {
    clients: Arc<Clients>,
    number: u64,
}

impl Place {
    /// A place for a client, which another may lose its connection for. `None`: too many of those have not noticed yet.
    pub(super) fn take(clients: &Arc<Clients>, client: &TcpStream) -> Option<Place> {
        let connection = client.try_clone().ok()?;
        let is_full = |state: &mut State| state.threads >= MAX_THREADS;
        let waited = clients
            .thread_ended
            .wait_timeout_while(clients.lock(), ROOM_WAIT, is_full);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        if state.places.len() >= MAX_CLIENTS
            && let Some((_, oldest)) = state.places.pop_front()
        {
            // It may be closed already. Its thread wakes up, and ends.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let number = state.next_number;
        state.next_number += 1;
        state.threads += 1;
        state.places.push_back((number, connection));
        Some(Place {
            clients: Arc::clone(clients),
            number,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.clients.lock();
        state.threads -= 1;
        state.places.retain(|(number, _)| *number != self.number);
        drop(state);
        self.clients.thread_ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_oldest_makes_room_and_threads_are_bounded() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let connect = || {
            let client = TcpStream::connect(address).expect("a connection");
            let (server, _) = listener.accept().expect("a client");
            (client, server)
        };
        let clients = Arc::new(Clients::default());
        let mut kept: Vec<_> = (0..=MAX_CLIENTS)
            .map(|_| {
                let (client, server) = connect();
                let place = Place::take(&clients, &server).expect("a place");
                (client, server, place)
            })
            .collect();
        let (oldest, _, _) = &mut kept[0];
        assert_eq!(oldest.read(&mut [0]).expect("its end"), 0);
        assert_eq!(clients.lock().places.len(), MAX_CLIENTS);
        loop {
            let (client, server) = connect();
            let Some(place) = Place::take(&clients, &server) else {
                break;
            };
            kept.push((client, server, place));
        }
        assert_eq!(kept.len(), MAX_THREADS);
        kept.clear();
        assert_eq!(clients.lock().threads, 0);
        assert!(clients.lock().places.is_empty());
    }
}
