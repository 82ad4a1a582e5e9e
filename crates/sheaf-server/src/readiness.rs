//! Which of many sockets have something to read (Linux's epoll, edge-triggered).
//!
//! A socket is entered once and reported at each change: when something has come, when its end has come. It is not
//! reported again for what was there at the last report. So a thread that is told of it reads until nothing is left,
//! and nothing has to be said to the kernel between two reports.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What is told of a socket. Its end is something to read.
const INPUT: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
/// The same, and that there is room for more to be sent.
const INPUT_AND_ROOM: u32 = INPUT | libc::EPOLLOUT as u32;
/// What stays, for all threads to see.
const ALWAYS: u32 = libc::EPOLLIN as u32;
/// Nothing will come any more behind what has come.
const ENDS: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
/// The most sockets that one call reports.
pub(crate) const MAX_REPORTS: usize = 32;

/// What is told of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The caller's number for it.
    pub(crate) number: u64,
    /// Behind what there is to read comes the end, of which there may be no report of its own.
    pub(crate) has_ended: bool,
}

/// A set of sockets, each with a number of the caller's choice.
pub(crate) struct Readiness {
    epoll: OwnedFd,
}

/// Reports itself to one of the threads that wait, each time that it rings.
pub(crate) struct Bell {
    /// A counter of the kernel's, which is not read.
    event: OwnedFd,
}

/// What a system call has returned, as a descriptor or as an error.
///
/// # Safety
/// The descriptor has no other owner.
unsafe fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// The numbers of those sockets whose peers send no more, whatever there is still to read: one call for all of them.
pub(crate) fn closed_by_peers(sockets: impl Iterator<Item = RawFd>) -> Vec<usize> {
    let asked = sockets.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLRDHUP,
        revents: 0,
    });
    let mut asked: Vec<libc::pollfd> = asked.collect();
    // SAFETY: there are so many entries, which live during the call; a time of 0 does not wait.
    let reported = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, 0) };
    if reported <= 0 {
        return Vec::new();
    }
    let ends = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    let numbered = asked.iter().enumerate();
    let closed = numbered.filter(|(_, socket)| socket.revents & ends != 0);
    closed.map(|(number, _)| number).collect()
}

impl Bell {
    /// A ring that no thread has been told of yet is not rung twice.
    pub(crate) fn ring(&self) -> io::Result<()> {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the bytes live during the call.
        let written =
            unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
        match written {
            8 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Readiness {
    /// No sockets yet.
    pub(crate) fn new() -> io::Result<Readiness> {
        // SAFETY: no memory is passed, and a descriptor that was just made is known nowhere else.
        let epoll = unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }?;
        Ok(Readiness { epoll })
    }

    /// A bell that is reported by this number.
    pub(crate) fn bell(&self, number: u64) -> io::Result<Bell> {
        // SAFETY: no memory is passed, and a descriptor that was just made is known nowhere else.
        let event = unsafe { owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) }?;
        self.control(libc::EPOLL_CTL_ADD, event.as_raw_fd(), INPUT, number)?;
        Ok(Bell { event })
    }

    /// Enters a socket. What has come already is reported.
    pub(crate) fn add(&self, socket: RawFd, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, INPUT, number)
    }

    /// Enters a socket that is reported to every thread that waits, from when it has something to read on.
    pub(crate) fn add_for_all(&self, socket: RawFd, number: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, ALWAYS, number)
    }

    /// Room is reported, too, from now on or not any more. What has come, or room that is there, is reported at once.
    pub(crate) fn report_room(&self, socket: RawFd, number: u64, is_on: bool) -> io::Result<()> {
        let events = match is_on {
            true => INPUT_AND_ROOM,
            false => INPUT,
        };
        self.control(libc::EPOLL_CTL_MOD, socket, events, number)
    }

    /// Takes a socket out, which is open.
    pub(crate) fn remove(&self, socket: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket, 0, 0)
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

    /// Waits until there is something to report, and puts it into `reports`, which has places; how many there are.
    pub(crate) fn wait(&self, reports: &mut [Report]) -> io::Result<usize> {
        self.report(reports, -1)
    }

    /// As [`wait`](Self::wait), without a wait: there may be nothing.
    pub(crate) fn look(&self, reports: &mut [Report]) -> io::Result<usize> {
        self.report(reports, 0)
    }

    /// `wait_ms`: -1 is for ever.
    fn report(&self, reports: &mut [Report], wait_ms: i32) -> io::Result<usize> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX_REPORTS];
        let places = reports.len().min(MAX_REPORTS);
        let count = loop {
            // SAFETY: there are so many places for events, which live during the call.
            let count = unsafe {
                libc::epoll_wait(
                    self.epoll.as_raw_fd(),
                    events.as_mut_ptr(),
                    places as i32,
                    wait_ms,
                )
            };
            if count > 0 || count == 0 && wait_ms == 0 {
                break count as usize;
            }
            let error = io::Error::last_os_error();
            if count < 0 && error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        };
        for (report, event) in reports.iter_mut().zip(&events[..count]) {
            *report = Report {
                number: event.u64,
                has_ended: event.events & ENDS != 0,
            };
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().expect("descriptors are left")
    }

    fn next(readiness: &Readiness) -> Report {
        let mut reports = [Report::default()];
        assert_eq!(readiness.wait(&mut reports).expect("one is ready"), 1);
        reports[0]
    }

    fn input(number: u64) -> Report {
        Report {
            number,
            has_ended: false,
        }
    }

    #[test]
    fn a_socket_is_reported_at_each_change() {
        let readiness = Readiness::new().expect("descriptors are left");
        let mut pairs = [pair(), pair()];
        for (number, (ours, _)) in pairs.iter().enumerate() {
            readiness
                .add(ours.as_raw_fd(), number as u64)
                .expect("it is open");
        }
        pairs[0].1.write_all(b"a").expect("there is room");
        assert_eq!(next(&readiness), input(0));
        // Nothing was read, but nothing has changed.
        pairs[1].1.write_all(b"b").expect("there is room");
        assert_eq!(next(&readiness), input(1));
        pairs[0].1.write_all(b"c").expect("there is room");
        assert_eq!(next(&readiness), input(0));
        // What comes together is reported once.
        pairs[0].1.write_all(b"d").expect("there is room");
        pairs[0].1.shutdown(Shutdown::Write).expect("it is open");
        let report = next(&readiness);
        assert_eq!((report.number, report.has_ended), (0, true));
        readiness
            .remove(pairs[0].0.as_raw_fd())
            .expect("it is there");
        pairs[0].0.shutdown(Shutdown::Both).expect("it is open");
        pairs[1].1.write_all(b"e").expect("there is room");
        assert_eq!(next(&readiness), input(1));
    }

    #[test]
    fn sockets_that_were_closed_are_found_among_others() {
        let mut pairs = [pair(), pair(), pair()];
        pairs[0].1.write_all(b"a").expect("there is room");
        pairs[2].1.write_all(b"a").expect("there is room");
        pairs[2].1.shutdown(Shutdown::Write).expect("it is open");
        let sockets = pairs.iter().map(|(ours, _)| ours.as_raw_fd());
        assert_eq!(closed_by_peers(sockets), [2]);
        assert!(closed_by_peers(std::iter::empty()).is_empty());
    }

    #[test]
    fn what_was_there_before_is_reported() {
        let readiness = Readiness::new().expect("descriptors are left");
        let (ours, mut theirs) = pair();
        theirs.write_all(b"a").expect("there is room");
        readiness.add(ours.as_raw_fd(), 7).expect("it is open");
        assert_eq!(next(&readiness), input(7));
    }

    #[test]
    fn a_socket_that_is_full_is_reported_when_there_is_room() {
        let readiness = Readiness::new().expect("descriptors are left");
        let (mut ours, mut theirs) = pair();
        let (marked, mut mark) = pair();
        ours.set_nonblocking(true).expect("it is open");
        readiness.add(ours.as_raw_fd(), 0).expect("it is open");
        readiness.add(marked.as_raw_fd(), 1).expect("it is open");
        let mut sent = 0;
        while let Ok(count) = ours.write(&[0; 4096]) {
            sent += count;
        }
        let descriptor = ours.as_raw_fd();
        readiness
            .report_room(descriptor, 0, true)
            .expect("it is open");
        mark.write_all(b"m").expect("there is room");
        assert_eq!(next(&readiness), input(1));
        theirs
            .read_exact(&mut vec![0; sent])
            .expect("that much was sent");
        assert_eq!(next(&readiness), input(0));
        readiness
            .report_room(descriptor, 0, false)
            .expect("it is open");
        ours.write_all(b"x").expect("there is room");
        theirs.read_exact(&mut [0]).expect("it was sent");
        mark.write_all(b"m").expect("there is room");
        assert_eq!(next(&readiness), input(1));
    }

    #[test]
    fn a_bell_is_reported_each_time_that_it_rings() {
        let readiness = Readiness::new().expect("descriptors are left");
        let bell = readiness.bell(3).expect("descriptors are left");
        for _ in 0..3 {
            bell.ring().expect("it is open");
            assert_eq!(next(&readiness), input(3));
        }
    }
}
