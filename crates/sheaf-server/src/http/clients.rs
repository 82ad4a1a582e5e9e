//! The clients that are served, of which there are few.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A client waits so long for one of the latter to end.
const ROOM_WAIT: Duration = Duration::from_millis(200);

/// See the module's comment.
pub(super) struct Clients {
    /// Clients at the same time. One that comes when there are so many takes the place of the oldest that may lose it.
    limit: usize,
    /// Of them those that hold their places.
    max_held: usize,
    state: Mutex<State>,
    thread_ended: Condvar,
}

#[derive(Default)]
struct State {
    /// By age, the oldest first.
    places: VecDeque<Taken>,
    next_number: u64,
    threads: usize,
}

struct Taken {
    number: u64,
    connection: TcpStream,
    /// Its request is being answered: it keeps the place.
    is_held: bool,
}

impl Clients {
    pub(super) fn new(limit: usize, max_held: usize) -> Clients {
        Clients {
            limit,
            max_held,
            state: Mutex::default(),
            thread_ended: Condvar::new(),
        }
    }

    /// Threads of clients that have a place, and of those that have lost theirs and are about to end.
    fn max_threads(&self) -> usize {
        2 * self.limit
    }

    /// Ends connections, by whether their clients hold their places. Threads notice that when they read or write.
    pub(super) fn disconnect(&self, which: impl Fn(bool) -> bool) {
        let state = self.lock();
        for place in state.places.iter().filter(|place| which(place.is_held)) {
            // It may be closed already.
            let _ = place.connection.shutdown(Shutdown::Both);
        }
    }

    /// Whether all threads have ended after some time at most.
    pub(super) fn wait_until_gone(&self, limit: Duration) -> bool {
        let waited = self
            .thread_ended
            .wait_timeout_while(self.lock(), limit, |state| state.threads > 0);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.threads == 0
    }

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
    /// A place for a client, which another may lose its connection for. `None`: all hold theirs, or too many of those
    /// that have lost one have not noticed yet.
    pub(super) fn take(clients: &Arc<Clients>, client: &TcpStream) -> Option<Place> {
        let connection = client.try_clone().ok()?;
        let is_full = |state: &mut State| state.threads >= clients.max_threads();
        let waited = clients
            .thread_ended
            .wait_timeout_while(clients.lock(), ROOM_WAIT, is_full);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        if state.places.len() >= clients.limit {
            let oldest = state.places.iter().position(|place| !place.is_held)?;
            if let Some(oldest) = state.places.remove(oldest) {
                // It may be closed already. Its thread wakes up, and ends.
                let _ = oldest.connection.shutdown(Shutdown::Both);
            }
        }
        let number = state.next_number;
        state.next_number += 1;
        state.threads += 1;
        state.places.push_back(Taken {
            number,
            connection,
            is_held: false,
        });
        Some(Place {
            clients: Arc::clone(clients),
            number,
        })
    }
}

impl Place {
    /// Keeps the place while `work` runs. `None`: it did not run, because too many hold theirs.
    pub(super) fn hold<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        {
            let mut state = self.clients.lock();
            if state.places.iter().filter(|place| place.is_held).count() >= self.clients.max_held {
                return None;
            }
            self.set_held(&mut state, true);
        }
        let outcome = work();
        self.set_held(&mut self.clients.lock(), false);
        Some(outcome)
    }

    fn set_held(&self, state: &mut State, is_held: bool) {
        let own = |place: &&mut Taken| place.number == self.number;
        if let Some(place) = state.places.iter_mut().find(own) {
            place.is_held = is_held;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.clients.lock();
        state.threads -= 1;
        state.places.retain(|place| place.number != self.number);
        drop(state);
        self.clients.thread_ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    const LIMIT: usize = 4;

    fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let address = listener.local_addr().expect("an address");
        let client = TcpStream::connect(address).expect("a connection");
        let (server, _) = listener.accept().expect("a client");
        (client, server)
    }

    #[test]
    fn the_oldest_makes_room_and_threads_are_bounded() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let clients = Arc::new(Clients::new(LIMIT, LIMIT));
        let mut kept: Vec<_> = (0..=LIMIT)
            .map(|_| {
                let (client, server) = connect(&listener);
                let place = Place::take(&clients, &server).expect("a place");
                (client, server, place)
            })
            .collect();
        let (oldest, _, _) = &mut kept[0];
        assert_eq!(oldest.read(&mut [0]).expect("its end"), 0);
        assert_eq!(clients.lock().places.len(), LIMIT);
        loop {
            let (client, server) = connect(&listener);
            let Some(place) = Place::take(&clients, &server) else {
                break;
            };
            kept.push((client, server, place));
        }
        assert_eq!(kept.len(), 2 * LIMIT);
        kept.clear();
        assert_eq!(clients.lock().threads, 0);
        assert!(clients.lock().places.is_empty());
        assert!(clients.wait_until_gone(Duration::ZERO));
    }

    #[test]
    fn those_that_are_answered_keep_their_places() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let clients = Arc::new(Clients::new(1, 1));
        let (_client, server) = connect(&listener);
        let place = Place::take(&clients, &server).expect("a place");
        let (_other, other) = connect(&listener);
        let held = place.hold(|| assert!(Place::take(&clients, &other).is_none()));
        assert_eq!(held, Some(()));
        assert!(Place::take(&clients, &other).is_some());
    }

    #[test]
    fn some_places_are_for_short_requests() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let clients = Arc::new(Clients::new(2, 1));
        let (_client, server) = connect(&listener);
        let place = Place::take(&clients, &server).expect("a place");
        let (_second, second) = connect(&listener);
        let other = Place::take(&clients, &second).expect("a place");
        let held = place.hold(|| {
            assert_eq!(other.hold(|| ()), None);
            let (_third, third) = connect(&listener);
            assert!(Place::take(&clients, &third).is_some());
        });
        assert_eq!(held, Some(()));
        drop(other);
        assert_eq!(place.hold(|| ()), Some(()));
    }
}
