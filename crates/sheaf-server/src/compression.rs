//! The compressed protocol: frames are deflated together, whatever packets they belong to.
//!
//! ```text
//!   +------------+-----+--------------+------------------+
//!   | compressed | seq | uncompressed | payload          |    3, 1 and 3 bytes, little-endian, and the payload
//!   +------------+-----+--------------+------------------+
//! ```
//!
//! What is uncompressed is a piece of the plain protocol's byte stream, frames with their headers, cut anywhere. An
//! uncompressed length of 0 says that the payload is not deflated: it was too short to be worth it. These frames have
//! sequence numbers of their own; with them the numbers inside mean nothing, and MySQL's clients do not agree on them.

use std::io::{self, Read, Write};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

const HEADER_BYTES: usize = 7;
/// Shorter ones are sent as they are, as MySQL does.
const MIN_COMPRESSED_BYTES: usize = 50;
/// What is deflated at once, so that the result fits a frame and the buffer is small.
const MAX_PIECE_BYTES: usize = 256 << 10;
/// The buffer of what is deflated grows in steps of this.
const STEP_BYTES: usize = 256 << 10;
/// Of an incoming frame, so much is in memory, and as much again inflated, however long it is. A packet takes its
/// memory where it is put together.
const RECEIVED_BYTES: usize = 64 << 10;
/// What an idle connection keeps of its buffers.
const IDLE_BYTES: usize = 16 << 10;

/// One side of a compressed connection, between the packets and the bytes below.
#[derive(Default)]
pub(crate) struct CompressedStream {
    /// The number of the next frame, in either direction.
    sequence: u8,
    /// What has come of the next header, or of the next piece of the frame's payload.
    raw: Vec<u8>,
    /// The frame that is being read.
    frame: Option<Frame>,
    /// What was inflated last, and how much of it is used.
    incoming: Vec<u8>,
    used: usize,
}

/// A frame whose header has come.
struct Frame {
    /// Bytes of the payload that are to come.
    payload_left: usize,
    /// `None`: the payload is not deflated.
    deflated: Option<Deflated>,
}

struct Deflated {
    inflater: Decompress,
    /// The last piece of the payload, and how much of it is used.
    piece: Vec<u8>,
    used: usize,
    /// Bytes that are still to come of it.
    inflated_left: usize,
}

impl CompressedStream {
    /// The next frame begins a command.
    pub(crate) fn begin_command(&mut self) {
        self.sequence = 0;
        if self.used == self.incoming.len() {
            self.incoming.clear();
            self.incoming.shrink_to(IDLE_BYTES);
            self.used = 0;
        }
    }

    pub(crate) fn read(&mut self, below: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
        while self.used == self.incoming.len() {
            if self.frame.is_none() && !self.read_header(below)? {
                return Ok(0);
            }
            self.incoming.clear();
            self.used = 0;
            self.read_piece(below)?;
        }
        let count = out.len().min(self.incoming.len() - self.used);
        out[..count].copy_from_slice(&self.incoming[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }

    /// False at the end of the stream. After an error for want of time it can be called again, as all that reads.
    fn read_header(&mut self, below: &mut impl Read) -> io::Result<bool> {
        if !self.read_raw(below, HEADER_BYTES)? {
            return Ok(false);
        }
        let Some([a, b, c, sequence, d, e, f]) = self.raw.first_chunk().copied() else {
            return Err(broken("a compressed frame has no header"));
        };
        let length =
            |bytes: [u8; 3]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize;
        if sequence != self.sequence {
            return Err(broken("a compressed frame is out of order"));
        }
        self.sequence = sequence.wrapping_add(1);
        self.raw.clear();
        let inflated_bytes = length([d, e, f]);
        self.frame = Some(Frame {
            payload_left: length([a, b, c]),
            deflated: (inflated_bytes > 0).then(|| Deflated {
                inflater: Decompress::new(true),
                piece: Vec::new(),
                used: 0,
                inflated_left: inflated_bytes,
            }),
        });
        Ok(true)
    }

    /// Reads a piece of the frame, and inflates one. The last one is followed by the check that the frame is whole.
    fn read_piece(&mut self, below: &mut impl Read) -> io::Result<()> {
        while let Some(mut frame) = self.frame.take() {
            let is_used_up = |deflated: &Deflated| deflated.used == deflated.piece.len();
            if frame.deflated.as_ref().is_none_or(is_used_up) && frame.payload_left > 0 {
                let bytes = frame.payload_left.min(RECEIVED_BYTES);
                if let Err(error) = self.read_whole_raw(below, bytes) {
                    self.frame = Some(frame);
                    return Err(error);
                }
                frame.payload_left -= bytes;
                let piece = std::mem::take(&mut self.raw);
                match &mut frame.deflated {
                    Some(deflated) => (deflated.piece, deflated.used) = (piece, 0),
                    None => self.incoming = piece,
                }
            }
            let is_over = match &mut frame.deflated {
                Some(deflated) => deflated.inflate(&mut self.incoming, frame.payload_left)?,
                None => frame.payload_left == 0,
            };
            let is_all = frame
                .deflated
                .as_ref()
                .is_some_and(|deflated| deflated.inflated_left == 0);
            if is_over {
                return Ok(());
            }
            self.frame = Some(frame);
            if !self.incoming.is_empty() && !is_all {
                return Ok(());
            }
        }
        Ok(())
    }

    fn read_whole_raw(&mut self, below: &mut impl Read, bytes: usize) -> io::Result<()> {
        match self.read_raw(below, bytes)? {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads until so many bytes are there. False: the stream ended before the first. What has come stays if there is
    /// an error.
    fn read_raw(&mut self, below: &mut impl Read, bytes: usize) -> io::Result<bool> {
        while self.raw.len() < bytes {
            let start = self.raw.len();
            self.raw.resize(bytes, 0);
            let result = below.read(&mut self.raw[start..]);
            self.raw.truncate(start + *result.as_ref().unwrap_or(&0));
            match result {
                Ok(0) if start == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Takes bytes of packets, and writes frames until all of them are gone.
    pub(crate) fn write(&mut self, below: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.chunks(MAX_PIECE_BYTES) {
            let deflated = match piece.len() < MIN_COMPRESSED_BYTES {
                true => None,
                false => Some(deflate(piece)?).filter(|deflated| deflated.len() < piece.len()),
            };
            let (payload, inflated_bytes) = match &deflated {
                Some(deflated) => (deflated.as_slice(), piece.len()),
                None => (piece, 0),
            };
            let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
            frame.extend_from_slice(&(payload.len() as u32).to_le_bytes()[..3]);
            frame.push(self.sequence);
            frame.extend_from_slice(&(inflated_bytes as u32).to_le_bytes()[..3]);
            frame.extend_from_slice(payload);
            below.write_all(&frame)?;
            self.sequence = self.sequence.wrapping_add(1);
        }
        Ok(bytes.len())
    }
}

impl Deflated {
    /// Inflates what there is of the piece, up to [`RECEIVED_BYTES`] and to what the header promises: exactly so many
    /// bytes, or it is an error. True: the frame is over.
    fn inflate(&mut self, inflated: &mut Vec<u8>, payload_left: usize) -> io::Result<bool> {
        let before = (self.inflater.total_in(), self.inflater.total_out());
        let start = inflated.len();
        // Where all has come there is room for one more, which would be too many.
        let room = self.inflated_left.clamp(1, RECEIVED_BYTES);
        inflated.resize(start + room, 0);
        let status = self.inflater.decompress(
            &self.piece[self.used..],
            &mut inflated[start..],
            FlushDecompress::None,
        );
        let status = status.map_err(|_| broken("a compressed frame cannot be read"))?;
        let (read, made) = (
            (self.inflater.total_in() - before.0) as usize,
            (self.inflater.total_out() - before.1) as usize,
        );
        inflated.truncate(start + made);
        self.used += read;
        if made > self.inflated_left {
            return Err(broken("a compressed frame is longer than it says"));
        }
        self.inflated_left -= made;
        let is_used_up = self.used == self.piece.len() && payload_left == 0;
        match status {
            Status::StreamEnd if self.inflated_left > 0 => {
                Err(broken("a compressed frame is shorter than it says"))
            }
            Status::StreamEnd if !is_used_up => {
                Err(broken("a compressed frame goes on behind its end"))
            }
            Status::StreamEnd => Ok(true),
            _ if read == 0 && made == 0 && (is_used_up || self.used < self.piece.len()) => {
                Err(broken("a compressed frame is cut"))
            }
            _ => Ok(false),
        }
    }
}

fn deflate(piece: &[u8]) -> io::Result<Vec<u8>> {
    let mut deflater = Compress::new(Compression::fast(), true);
    // What does not get shorter is sent as it is.
    let mut deflated = Vec::with_capacity(piece.len());
    loop {
        let used = deflater.total_in() as usize;
        let status = deflater
            .compress_vec(&piece[used..], &mut deflated, FlushCompress::Finish)
            .map_err(io::Error::other)?;
        match status {
            Status::StreamEnd => return Ok(deflated),
            _ if deflated.len() >= piece.len() => return Ok(deflated),
            _ => deflated.reserve(STEP_BYTES),
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    const _: () = assert!(
        MAX_PIECE_BYTES <= 0xFF_FFFF,
        "a frame has 24 bits of length"
    );

    fn sent(bytes: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        CompressedStream::default()
            .write(&mut wire, bytes)
            .expect("memory takes all");
        wire
    }

    fn received(wire: Vec<u8>) -> io::Result<Vec<u8>> {
        let (mut stream, mut below) = (CompressedStream::default(), Cursor::new(wire));
        let mut all = Vec::new();
        let mut piece = [0; 1000];
        loop {
            match stream.read(&mut below, &mut piece)? {
                0 => return Ok(all),
                count => all.extend_from_slice(&piece[..count]),
            }
        }
    }

    /// Gives a byte at a time, and every other time none in time.
    struct SlowClient(Cursor<Vec<u8>>, bool);

    impl Read for SlowClient {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            match self.1 {
                true => Err(io::ErrorKind::WouldBlock.into()),
                false => self.0.read(&mut out[..1]),
            }
        }
    }

    #[test]
    fn a_frame_that_comes_slowly_is_not_lost() {
        let text = vec![b'x'; 10_000];
        let wire = sent(&text);
        let waits = wire.len();
        let (mut stream, mut below) = (
            CompressedStream::default(),
            SlowClient(Cursor::new(wire), false),
        );
        let mut piece = vec![0; text.len()];
        let mut waited = 0;
        let count = loop {
            match stream.read(&mut below, &mut piece) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => waited += 1,
                result => break result.expect("a whole frame"),
            }
        };
        assert_eq!((waited, &piece[..count]), (waits, &text[..]));
    }

    /// Frames of other clients are as long as their packets.
    #[test]
    fn a_long_frame_is_read_in_pieces() {
        for text in [vec![b'x'; 5_000_000], noise(300_000), noise(2_000_000)] {
            let deflated = deflate_all(&text);
            let mut wire = (deflated.len() as u32).to_le_bytes()[..3].to_vec();
            wire.push(0);
            wire.extend_from_slice(&(text.len() as u32).to_le_bytes()[..3]);
            wire.extend_from_slice(&deflated);
            assert!(received(wire[..wire.len() - 1].to_vec()).is_err());
            let (mut stream, mut below) = (CompressedStream::default(), Cursor::new(wire));
            let (mut all, mut piece) = (Vec::new(), vec![0; 3_000_000]);
            while all.len() < text.len() {
                let count = stream.read(&mut below, &mut piece).expect("a whole frame");
                all.extend_from_slice(&piece[..count]);
                assert!(stream.incoming.capacity() <= 2 * RECEIVED_BYTES);
                assert!(stream.raw.capacity() <= RECEIVED_BYTES);
            }
            assert!(all == text);
            // The end of the frame was read with its last piece.
            assert_eq!(below.position() as usize, below.get_ref().len());
            assert!(stream.frame.is_none());
        }
    }

    /// Also what does not get shorter.
    fn deflate_all(text: &[u8]) -> Vec<u8> {
        let mut deflater = Compress::new(Compression::fast(), true);
        let mut deflated = Vec::with_capacity(text.len() + text.len() / 2 + 1000);
        let status = deflater.compress_vec(text, &mut deflated, FlushCompress::Finish);
        assert_eq!(status.expect("there is room"), Status::StreamEnd);
        deflated
    }

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        (0..bytes).map(|_| next()).collect()
    }

    #[test]
    fn what_is_sent_is_received() {
        for bytes in [
            Vec::new(),
            b"ping".to_vec(),
            vec![b'x'; MIN_COMPRESSED_BYTES],
            vec![b'x'; 3 * MAX_PIECE_BYTES + 1],
            noise(100),
            noise(MAX_PIECE_BYTES + 77),
        ] {
            assert_eq!(received(sent(&bytes)).expect("whole frames"), bytes);
        }
        assert!(sent(&vec![b'x'; 10_000]).len() < 200);
        assert_eq!(sent(&noise(100)).len(), HEADER_BYTES + 100);
        assert_eq!(sent(b"ping")[..HEADER_BYTES], [4, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn damaged_frames_are_errors() {
        let wire = sent(&vec![b'x'; 10_000]);
        for end in 1..wire.len() {
            assert!(received(wire[..end].to_vec()).is_err(), "cut at {end}");
        }
        for at in 0..wire.len() {
            for bit in 0..8 {
                let mut damaged = wire.clone();
                damaged[at] ^= 1 << bit;
                // Some bits of deflate's header mean nothing.
                if let Ok(bytes) = received(damaged) {
                    assert_eq!(bytes, vec![b'x'; 10_000], "byte {at} bit {bit}");
                }
            }
        }
    }

    #[test]
    fn frames_are_numbered_from_each_command_on() {
        let mut stream = CompressedStream::default();
        let mut wire = Vec::new();
        stream.write(&mut wire, b"one").expect("memory");
        stream.write(&mut wire, b"two").expect("memory");
        assert_eq!((wire[3], wire[HEADER_BYTES + 3 + 3]), (0, 1));
        stream.begin_command();
        let mut wire = Vec::new();
        stream.write(&mut wire, b"one").expect("memory");
        assert_eq!(wire[3], 0);
        assert!(received([wire.clone(), wire].concat()).is_err());
    }
}
