//! TLS, by rustls: a certificate of the server, encrypted connections of clients.
//!
//! A client asks for TLS instead of answering the greeting, and what follows is encrypted. rustls is a state machine
//! without I/O, which fits a connection that blocks on its own thread:
//!
//! ```text
//!   socket --read_tls--> rustls --reader--> packets --writer--> rustls --write_tls--> socket
//! ```

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection};
use sheaf_sql::Encryption;
use socket2::Socket;

/// The longest file with certificates or a key. All authorities that a system trusts take a quarter of it.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// The server's certificate, as files in PEM.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The certificate, and behind it those that it is signed with, if clients need them.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl TlsOptions {
    /// Reads the files. Fails with what is wrong with which of them.
    pub(crate) fn load(&self) -> io::Result<Arc<ServerConfig>> {
        let certificates = read_certificates(&self.certificate)?;
        let key = read_key(&self.key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_no_client_auth())
            .and_then(|builder| builder.with_single_cert(certificates, key))
            .map_err(|error| unreadable("the TLS certificate", &self.certificate, error))?;
        Ok(Arc::new(config))
    }
}

/// The certificates of a file in PEM. Fails with what is wrong with it.
pub(crate) fn read_certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let wrong = |error: String| unreadable("the TLS certificate", path, error);
    let text = read_pem(path).map_err(wrong)?;
    CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(error.to_string()))
}

/// The key of a file in PEM. Fails with what is wrong with it.
pub(crate) fn read_key(path: &Path) -> io::Result<PrivateKeyDer<'static>> {
    let wrong = |error: String| unreadable("the TLS key", path, error);
    let text = read_pem(path).map_err(wrong)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| wrong(error.to_string()))
}

/// The bytes of a file that a user may have named: it may be a pipe that nobody writes, or have no end.
fn read_pem(path: &Path) -> Result<Vec<u8>, String> {
    let text = |error: io::Error| error.to_string();
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = file.open(path).map_err(text)?;
    if !file.metadata().map_err(text)?.is_file() {
        return Err("it is no regular file".to_string());
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_PEM_BYTES + 1).read_to_end(&mut bytes);
    if read.map_err(text)? as u64 > MAX_PEM_BYTES {
        return Err(format!("it is longer than {MAX_PEM_BYTES} bytes"));
    }
    Ok(bytes)
}

fn unreadable(what: &str, path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!(
        "{what} in {} cannot be used: {error}",
        path.display()
    ))
}

/// The encrypted stream over a socket.
pub(crate) struct TlsStream {
    connection: ServerConnection,
    /// What was read from the socket before the stream began, and belongs to it.
    ahead: Vec<u8>,
}

/// The bytes below: those that came ahead, then the socket's.
struct Wire<'a> {
    ahead: &'a mut Vec<u8>,
    socket: &'a Socket,
}

impl Read for Wire<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            return (&mut &*self.socket).read(out);
        }
        let count = out.len().min(self.ahead.len());
        out[..count].copy_from_slice(&self.ahead[..count]);
        self.ahead.drain(..count);
        Ok(count)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&mut &*self.socket).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsStream {
    /// Agrees with the client on keys. `ahead` is what of the client's first message has been read already.
    pub(crate) fn accept(
        config: &Arc<ServerConfig>,
        socket: &Socket,
        ahead: Vec<u8>,
    ) -> io::Result<TlsStream> {
        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut stream = TlsStream { connection, ahead };
        let mut wire = Wire {
            ahead: &mut stream.ahead,
            socket,
        };
        while stream.connection.is_handshaking() {
            // An error is told to the client, as the protocol has it.
            stream.connection.complete_io(&mut wire)?;
        }
        Ok(stream)
    }

    /// What was agreed on; names are OpenSSL's where they differ.
    pub(crate) fn encryption(&self) -> Option<Encryption> {
        let version = match self.connection.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => "TLSv1.2",
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "unknown",
        };
        let suite = self.connection.negotiated_cipher_suite()?.suite();
        let cipher = suite
            .as_str()
            .unwrap_or("unknown")
            .replace("TLS13_", "TLS_");
        Some(Encryption { version, cipher })
    }

    /// 0 at the end, whether the client said goodbye or not: a packet that is cut is noticed above.
    pub(crate) fn read(&mut self, socket: &Socket, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                result => return result,
            }
            let mut wire = Wire {
                ahead: &mut self.ahead,
                socket,
            };
            let count = self.connection.read_tls(&mut wire)?;
            let processed = self.connection.process_new_packets();
            // An alert, or an answer to a renewal of keys.
            self.send(socket)?;
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if count == 0 {
                return Ok(0);
            }
        }
    }

    pub(crate) fn write(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let count = self.connection.writer().write(bytes)?;
        self.send(socket)?;
        Ok(count)
    }

    fn send(&mut self, socket: &Socket) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut &*socket)?;
        }
        Ok(())
    }
}
