//! Which of many sockets have something to read (Linux's epoll). A socket is reported once, and then not again before it is
//! armed again, so that whoever was told of it has it alone.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What is told of a socket. Its end is something to read.
const ONE_REPORT: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLONESHOT) as u32;
/// There is room for more to be sent, or the other end is gone.
const ROOM: u32 = (libc::EPOLLOUT | libc::EPOLLONESHOT) as u32;
/// The same until the socket is closed.
const ALWAYS: u32 = libc::EPOLLIN as u32;

/// A set of sockets, each with a number of the caller's choice.
pub(crate) struct Readiness {
    epoll: OwnedFd,
}

impl Readiness {
    /// No sockets yet.
    pub(crate) fn new() -> io::Result<Readiness> {
        // SAFETY: no memory is passed; the result is checked.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Readiness {
            // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
            epoll: unsafe { OwnedFd::from_raw_fd(descriptor) },
        })
    }

    /// Adds a socket, armed. It leaves the set when it is closed.
    pub(crate) fn add(&self, socket: RawFd, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, ONE_REPORT, number)
    }

    /// Adds a socket that everybody who waits is told of, from when it has something to read on.
    pub(crate) fn add_for_all(&self, socket: RawFd, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, ALWAYS, number)
    }

    /// Arms a socket again; if it has something to read already, it is reported at once.
    pub(crate) fn arm(&self, socket: RawFd, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, ONE_REPORT, number)
    }

    /// As [`arm`](Self::arm), for when something can be sent.
    pub(crate) fn arm_for_room(&self, socket: RawFd, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, ROOM, number)
    }

    fn control(&self, what: i32, socket: RawFd, events: u32, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events,
            u64: number,
        };
        // SAFETY: the event lives during the call; a wrong descriptor is an error.
        let result =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), what, socket, &raw mut event) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until a socket has something to read, and returns its number.
    pub(crate) fn wait(&self) -> io::Result<u64> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        loop {
            // SAFETY: there is one place for an event, which lives during the call.
            let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &raw mut event, 1, -1) };
            if count == 1 {
                return Ok(event.u64);
            }
            let error = io::Error::last_os_error();
            if count < 0 && error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_reported_once_each_time_it_is_armed() {
        let readiness = Readiness::new().expect("descriptors are left");
        let mut pairs: Vec<(UnixStream, UnixStream)> = (0..2)
            .map(|_| UnixStream::pair().expect("descriptors are left"))
            .collect();
        for (number, (ours, _)) in pairs.iter().enumerate() {
            readiness
                .add(ours.as_raw_fd(), number as u64)
                .expect("it is open");
        }
        pairs[0].1.write_all(b"a").expect("there is room");
        assert_eq!(readiness.wait().expect("one is ready"), 0);
        // Nothing was read, but it is not armed.
        pairs[1].1.write_all(b"b").expect("there is room");
        assert_eq!(readiness.wait().expect("one is ready"), 1);
        let ours = pairs[0].0.as_raw_fd();
        readiness.arm(ours, 0).expect("it is open");
        assert_eq!(readiness.wait().expect("one is ready"), 0);
        let mut byte = [0];
        pairs[0].0.read_exact(&mut byte).expect("it was sent");
        readiness.arm(ours, 0).expect("it is open");
        pairs[0]
            .1
            .shutdown(std::net::Shutdown::Write)
            .expect("it is open");
        assert_eq!(readiness.wait().expect("the end is something"), 0);
    }

    #[test]
    fn a_socket_that_is_full_is_reported_when_there_is_room() {
        let readiness = Readiness::new().expect("descriptors are left");
        let (mut ours, mut theirs) = UnixStream::pair().expect("descriptors are left");
        let (mut marked, mark) = UnixStream::pair().expect("descriptors are left");
        ours.set_nonblocking(true).expect("it is open");
        let mut sent = 0;
        while let Ok(count) = ours.write(&[0; 4096]) {
            sent += count;
        }
        readiness.add(ours.as_raw_fd(), 0).expect("it is open");
        readiness.add(mark.as_raw_fd(), 1).expect("it is open");
        readiness
            .arm_for_room(ours.as_raw_fd(), 0)
            .expect("it is open");
        marked.write_all(b"m").expect("there is room");
        assert_eq!(readiness.wait().expect("one is ready"), 1);
        theirs
            .read_exact(&mut vec![0; sent])
            .expect("that much was sent");
        assert_eq!(readiness.wait().expect("there is room"), 0);
    }
}
