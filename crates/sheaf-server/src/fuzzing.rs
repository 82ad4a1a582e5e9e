//! Bodies of the fuzz targets of the protocol: each takes any bytes, and panics if it finds something.
//!
//! libFuzzer calls them from `fuzz/`; the tests below call them with bytes that follow from a seed. The ignored ones go
//! on for as long as they are told, from a new seed.

use std::io::{self, Cursor, Read, Write};
use std::time::Duration;

use mysql_common::io::ParseBuf;
use mysql_common::packets::HandshakeResponse;

use crate::compression::CompressedStream;
use crate::handshake::UserChange;
use crate::packet::{PacketStream, Transport};
use crate::parameters::BoundStatement;

/// The longest packet that is taken.
const MAX_PACKET_BYTES: usize = 1 << 12;
/// Most parameters of a statement here.
const MAX_PARAMETERS: u8 = 20;

/// A client that has said everything, of which a read gets a few bytes.
struct Pieces {
    incoming: Cursor<Vec<u8>>,
    piece_bytes: usize,
    compression: Option<CompressedStream>,
}

/// A few of the bytes.
struct Few<'a>(&'a mut Cursor<Vec<u8>>, usize);

impl Read for Few<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = out.len().min(self.1);
        self.0.read(&mut out[..count])
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut few = Few(&mut self.incoming, self.piece_bytes);
        match &mut self.compression {
            None => few.read(out),
            Some(stream) => stream.read(&mut few, out),
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Transport for Pieces {
    fn set_read_timeout(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn begin_command(&mut self) {
        if let Some(stream) = &mut self.compression {
            stream.begin_command();
        }
    }
}

/// Reads packets until there is none any more. The first byte says in pieces of how many bytes they come, and whether
/// they are compressed.
pub fn packets(bytes: &[u8]) {
    let Some((&choice, rest)) = bytes.split_first() else {
        return;
    };
    let transport = Pieces {
        incoming: Cursor::new(rest.to_vec()),
        piece_bytes: usize::from(choice >> 1) + 1,
        compression: (choice & 1 == 1).then(CompressedStream::default),
    };
    let mut stream = PacketStream::new(transport, MAX_PACKET_BYTES);
    let mut payload = Vec::new();
    for _ in 0..=rest.len() {
        stream.begin_command();
        if stream.read_packet(&mut payload).is_err() {
            return;
        }
        assert!(payload.len() <= MAX_PACKET_BYTES, "the limit holds");
    }
    panic!("each packet takes bytes, so there are fewer packets than bytes");
}

/// Reads the bytes as the answer to a greeting, and as what follows COM_CHANGE_USER.
pub fn handshake(bytes: &[u8]) {
    if let Ok(response) = ParseBuf(bytes).parse::<HandshakeResponse<'_>>(()) {
        assert!(response.user().len() <= bytes.len());
        assert!(response.scramble_buf().len() <= bytes.len());
    }
    // Whatever it says, reading it ends.
    let _ = UserChange::parse(bytes);
}

/// Reads the bytes as the values of a prepared statement, twice: types that were sent are remembered. The first byte
/// says how many parameters there are.
pub fn parameters(bytes: &[u8]) {
    let Some((&count, body)) = bytes.split_first() else {
        return;
    };
    let count = usize::from(count % MAX_PARAMETERS);
    let mut statement = BoundStatement::new(count);
    for _ in 0..2 {
        if let Ok(values) = statement.decode(body, Default::default()) {
            assert_eq!(values.len(), count);
        }
    }
}

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of which many are small, as lengths, flags and numbers of types are.
    fn some_bytes(next: &mut dyn FnMut() -> u64) -> Vec<u8> {
        (0..next() % 120)
            .map(|_| match next() % 3 {
                0 => (next() % 4) as u8,
                1 => (next() % 16) as u8,
                _ => next() as u8,
            })
            .collect()
    }

    #[test]
    fn no_bytes_make_the_protocol_panic() {
        let mut random = sheaf_storage::Random::new(1);
        let mut next = || random.next();
        for _ in 0..200_000 {
            let bytes = some_bytes(&mut next);
            packets(&bytes);
            handshake(&bytes);
            parameters(&bytes);
        }
    }

    #[test]
    #[ignore = "goes on for SHEAF_FUZZ_SECONDS"]
    fn fuzz_packets() {
        driver::run("packets", packets, some_bytes);
    }

    #[test]
    #[ignore = "goes on for SHEAF_FUZZ_SECONDS"]
    fn fuzz_handshake() {
        driver::run("handshake", handshake, some_bytes);
    }

    #[test]
    #[ignore = "goes on for SHEAF_FUZZ_SECONDS"]
    fn fuzz_parameters() {
        driver::run("parameters", parameters, some_bytes);
    }
}
