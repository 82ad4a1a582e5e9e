//! The clients that are served, of which there are few.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Clients at the same time. One that comes when there are so many takes the place of the oldest.
const MAX_CLIENTS: usize = 16;
/// Threads of clients that have a place, and of those that have lost theirs and are about to end.
const MAX_THREADS: usize = 2 * MAX_CLIENTS;

/// See the module's comment.
#[derive(Default)]
pub(super) struct Clients {
    state: Mutex<State>,
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
        let mut state = clients.lock();
        if state.threads >= MAX_THREADS {
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
