//! Packets against a peer that has said everything it will say.

use std::io::Cursor;

use sheaf_sql::SqlError;

use super::receiving::RECEIVE_BUFFER_BYTES;
use super::*;

/// A peer that has said everything it will say.
pub(crate) struct Script {
    pub incoming: Cursor<Vec<u8>>,
    pub outgoing: Vec<u8>,
    pub writes: usize,
    pub fail_writes: bool,
    /// Bytes that are taken at once.
    pub room: usize,
}

impl Script {
    pub(crate) fn new(incoming: Vec<u8>) -> Self {
        Script {
            incoming: Cursor::new(incoming),
            outgoing: Vec::new(),
            writes: 0,
            fail_writes: false,
            room: 0,
        }
    }
}

impl Read for Script {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.incoming.read(out)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.fail_writes {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.writes += 1;
        self.outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Transport for Script {
    fn set_read_timeout(&mut self, _timeout: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn write_at_once(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room);
        if count == 0 && !self.fail_writes {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.room -= count;
        self.write(&bytes[..count])
    }
}

pub(crate) fn stream(incoming: Vec<u8>) -> PacketStream<Script> {
    PacketStream::new(Script::new(incoming), 64 << 20)
}

impl PacketStream<Script> {
    /// What the peer received.
    pub(crate) fn sent(&mut self) -> Vec<u8> {
        self.flush().expect("a script takes everything");
        std::mem::take(&mut self.transport.outgoing)
    }
}

fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    frame.push(sequence);
    frame.extend_from_slice(payload);
    frame
}

fn write(packets: &mut PacketStream<Script>, payload: &[u8]) {
    packets
        .write_packet(|out| {
            out.extend_from_slice(payload);
            Ok(())
        })
        .expect("a script takes everything");
}

#[test]
fn a_packet_has_its_length_and_its_number_in_front() {
    let mut packets = stream(Vec::new());
    write(&mut packets, b"abc");
    write(&mut packets, b"");
    assert_eq!(
        packets.sent(),
        [&[3, 0, 0, 0][..], b"abc", &[0, 0, 0, 1]].concat()
    );
}

#[test]
fn small_packets_leave_together() {
    let mut packets = stream(Vec::new());
    let packet = HEADER_BYTES + b"a row of a result".len();
    for _ in 0..SEND_BUFFER_BYTES / packet {
        write(&mut packets, b"a row of a result");
    }
    packets.sent();
    assert_eq!(packets.transport.writes, 1);
}

#[test]
fn a_long_packet_is_split_and_read_back() {
    for bytes in [
        MAX_FRAME_BYTES - 1,
        MAX_FRAME_BYTES,
        MAX_FRAME_BYTES + 1,
        2 * MAX_FRAME_BYTES + 5,
    ] {
        let payload: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        let mut packets = stream(Vec::new());
        write(&mut packets, &payload);
        let sent = packets.sent();
        let frames = bytes / MAX_FRAME_BYTES + 1;
        assert_eq!(sent.len(), bytes + frames * HEADER_BYTES);

        let mut packets = stream(sent);
        let mut received = Vec::new();
        packets
            .read_packet(&mut received)
            .expect("the packet is whole");
        assert!(
            received == payload,
            "a packet of {bytes} bytes came back different"
        );
        assert_eq!(packets.sequence, frames as u8);
    }
}

#[test]
fn a_frame_out_of_order_is_refused() {
    let mut packets = stream(frame(3, b"x"));
    let error = packets
        .read_packet(&mut Vec::new())
        .expect_err("number 3 comes first");
    assert!(
        matches!(
            error,
            ReadError::OutOfOrder {
                expected: 0,
                got: 3
            }
        ),
        "{error}"
    );
}

#[test]
fn a_packet_that_is_too_large_is_skipped_and_the_next_one_read() {
    let big = vec![7; MAX_FRAME_BYTES];
    let incoming = [frame(0, &big), frame(1, &big[..100]), frame(0, b"next")].concat();
    let mut packets = stream(incoming);
    packets.set_max_packet_bytes(1 << 20);
    let mut payload = Vec::new();
    let error = packets
        .read_packet(&mut payload)
        .expect_err("16 MiB are more than 1 MiB");
    assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
    assert!(
        payload.capacity() < 1 << 20,
        "the limit also bounds the memory"
    );
    packets.begin_command();
    packets
        .read_packet(&mut payload)
        .expect("the stream is in step again");
    assert_eq!(payload, b"next");
}

#[test]
fn an_end_between_packets_is_not_an_end_inside_one() {
    let error = stream(Vec::new())
        .read_packet(&mut Vec::new())
        .expect_err("nothing came");
    assert!(matches!(error, ReadError::Closed));
    for cut in 1..7 {
        let error = stream(frame(0, b"abc")[..cut].to_vec())
            .read_packet(&mut Vec::new())
            .expect_err("the packet is cut");
        assert!(
            matches!(&error, ReadError::Io(e) if e.kind() == io::ErrorKind::UnexpectedEof),
            "{error}"
        );
    }
}

#[test]
fn a_packet_that_cannot_be_filled_leaves_no_trace() {
    let mut packets = stream(Vec::new());
    write(&mut packets, b"before");
    let error = packets.write_packet(|out| {
        out.extend_from_slice(b"half a row");
        Err(SqlError::unknown("no"))
    });
    assert!(error.is_err());
    write(&mut packets, b"after");
    assert_eq!(
        packets.sent(),
        [frame(0, b"before"), frame(1, b"after")].concat()
    );
}

#[test]
fn an_answer_that_was_taken_back_is_replaced_by_another() {
    let mut packets = stream(frame(0, b"a command"));
    packets
        .read_packet(&mut Vec::new())
        .expect("the packet is whole");
    write(&mut packets, b"all is well");
    write(&mut packets, b"really");
    packets.take_back_answer();
    write(&mut packets, b"no");
    assert_eq!(packets.sent(), frame(1, b"no"));
}

#[test]
fn a_peer_that_takes_nothing_is_not_waited_for() {
    let mut packets = stream(Vec::new());
    write(&mut packets, b"an answer");
    packets.transport.room = 5;
    assert!(!packets.flush_at_once().expect("the peer is there"));
    assert!(packets.has_unsent());
    packets.transport.room = 100;
    assert!(packets.flush_at_once().expect("the peer is there"));
    assert_eq!(packets.transport.outgoing, frame(0, b"an answer"));
    write(&mut packets, b"more");
    packets.transport.fail_writes = true;
    assert_eq!(packets.flush_at_once().expect_err("it is gone").code, 1160);
    assert!(packets.is_broken());
}

#[test]
fn a_read_that_fills_its_buffer_may_have_left_something() {
    let commands: Vec<u8> = (0..)
        .flat_map(|_: u32| frame(0, &[7; 60]))
        .take(RECEIVE_BUFFER_BYTES + 128)
        .collect();
    let mut packets = stream(commands);
    assert!(packets.has_come().expect("the script goes on"));
    assert!(packets.may_have_more());
    let mut payload = Vec::new();
    while packets.has_unread() {
        packets.begin_command();
        packets.read_packet(&mut payload).expect("it is whole");
    }
    assert!(packets.has_come().expect("the script goes on"));
    assert!(
        !packets.may_have_more(),
        "128 bytes are less than there was room for"
    );
    packets.note_end();
    assert!(packets.may_have_more(), "the end was not read");
}

#[test]
fn after_a_failed_write_nothing_is_sent() {
    let mut packets = stream(Vec::new());
    packets.transport.fail_writes = true;
    write(&mut packets, b"lost");
    assert_eq!(packets.flush().expect_err("the pipe is broken").code, 1160);
    assert!(packets.is_broken());
    packets.transport.fail_writes = false;
    write(&mut packets, b"late");
    assert!(packets.flush().is_err());
    assert!(packets.transport.outgoing.is_empty());
}
