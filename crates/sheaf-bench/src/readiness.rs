//! Which of many sockets have something to read (Linux's epoll, level-triggered).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Sockets that are reported by one call; others follow with the next.
const MAX_REPORTED: usize = 64;

/// A set of sockets, each with a number of the caller's choice.
pub struct Readiness {
    epoll: OwnedFd,
    events: [libc::epoll_event; MAX_REPORTED],
}

impl Readiness {
    /// No sockets yet.
    pub fn new() -> io::Result<Readiness> {
        // SAFETY: no memory is passed; the result is checked.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Readiness {
            // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
            epoll: unsafe { OwnedFd::from_raw_fd(descriptor) },
            events: [libc::epoll_event { events: 0, u64: 0 }; MAX_REPORTED],
        })
    }

    /// Adds a socket, which stays in the set until it is closed.
    pub fn add(&self, socket: RawFd, number: usize) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: number as u64,
        };
        // SAFETY: the event lives during the call; a wrong descriptor is an error.
        let added = unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                socket,
                &raw mut event,
            )
        };
        match added {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until a socket has something to read, and returns the numbers of those that have.
    pub fn wait(&mut self) -> io::Result<impl Iterator<Item = usize>> {
        loop {
            // SAFETY: the events are MAX_REPORTED places of this value, which lives during the call.
            let count = unsafe {
                libc::epoll_wait(
                    self.epoll.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    MAX_REPORTED as libc::c_int,
                    -1,
                )
            };
            if let Ok(count) = usize::try_from(count) {
                return Ok(self.events[..count].iter().map(|event| event.u64 as usize));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}
