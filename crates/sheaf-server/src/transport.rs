//! The byte stream of a connection: a socket, and what the handshake puts over it.
//!
//! ```text
//!   packets -> [ compression ] -> [ TLS ] -> socket
//! ```
//!
//! Neither is there until both sides have agreed on it, and most connections never do.

use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use sheaf_sql::Encryption;
use socket2::Socket;

use crate::compression::CompressedStream;
use crate::packet::{Transport, is_timeout};
use crate::tls::TlsStream;

pub struct SocketTransport {
    below: Below,
    compression: Option<Box<CompressedStream>>,
    /// How the server does TLS, if it does.
    tls: Option<Arc<ServerConfig>>,
}

/// The socket, encrypted or not. Its reads and writes do not need it exclusively, so that others can shut it down.
struct Below {
    socket: Arc<Socket>,
    encrypted: Option<Box<TlsStream>>,
}

impl SocketTransport {
    pub fn new(socket: Arc<Socket>, tls: Option<Arc<ServerConfig>>) -> SocketTransport {
        SocketTransport {
            below: Below {
                socket,
                encrypted: None,
            },
            compression: None,
            tls,
        }
    }
}

impl Read for Below {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.encrypted {
            None => (&*self.socket).read(out),
            Some(stream) => stream.read(&self.socket, out),
        }
    }
}

impl Write for Below {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encrypted {
            None => (&*self.socket).write(bytes),
            Some(stream) => stream.write(&self.socket, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for SocketTransport {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.compression {
            None => self.below.read(out),
            Some(stream) => stream.read(&mut self.below, out),
        }
    }
}

impl Write for SocketTransport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.compression {
            None => self.below.write(bytes),
            Some(stream) => stream.write(&mut self.below, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Transport for SocketTransport {
    fn set_read_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.below.socket.set_read_timeout(timeout)
    }

    fn set_write_timeout(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.below.socket.set_write_timeout(timeout)
    }

    fn await_room(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let mut polled = libc::pollfd {
            fd: self.below.socket.as_raw_fd(),
            events: libc::POLLOUT,
            revents: 0,
        };
        let millis = timeout.map_or(-1, |timeout| {
            i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX)
        });
        // SAFETY: `polled` is one entry, and exclusively ours.
        match unsafe { libc::poll(&raw mut polled, 1, millis) } {
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
            // An end is found by the write.
            ready => Ok(ready > 0),
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let socket = &self.below.socket;
        socket.set_read_timeout(timeout)?;
        let mut byte = [MaybeUninit::uninit()];
        loop {
            // It stays to be read.
            return match socket.recv_with_flags(&mut byte, libc::MSG_PEEK) {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_timeout(&error) => Ok(false),
                Err(error) => Err(error),
            };
        }
    }

    fn read_at_once(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.is_plain() {
            return self.read(out);
        }
        let descriptor = self.below.socket.as_raw_fd();
        // SAFETY: `out` is exclusively ours and has this length; the socket is open as long as we know it.
        let count = unsafe {
            libc::recv(
                descriptor,
                out.as_mut_ptr().cast(),
                out.len(),
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn write_at_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_plain() {
            return self.write(bytes);
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        self.below.socket.send_with_flags(bytes, flags)
    }

    fn begin_command(&mut self) {
        if let Some(stream) = &mut self.compression {
            stream.begin_command();
        }
    }

    fn is_plain(&self) -> bool {
        self.compression.is_none() && self.below.encrypted.is_none()
    }

    fn offers_tls(&self) -> bool {
        self.tls.is_some()
    }

    fn start_tls(&mut self, ahead: Vec<u8>) -> io::Result<Option<Encryption>> {
        let config = self.tls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let stream = TlsStream::accept(config, &self.below.socket, ahead)?;
        let encryption = stream.encryption();
        self.below.encrypted = Some(Box::new(stream));
        Ok(encryption)
    }

    fn start_compression(&mut self) {
        self.compression = Some(Box::default());
    }
}
