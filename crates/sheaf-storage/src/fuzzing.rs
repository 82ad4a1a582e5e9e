//! Bodies of the fuzz targets of the log: each takes any bytes, and panics if it finds something.
//!
//! libFuzzer calls them from `fuzz/`; the tests below call them with bytes that follow from a seed, and with real
//! frames that are damaged a little. The ignored ones go on for as long as they are told, from a new seed.

use std::sync::Arc;

use crate::disk::Disk;
use crate::disk::simulated::{SimulatedDisk, SimulationOptions};
use crate::log::bytes::Reader;
use crate::log::frame::{self, Frame};
use crate::log::{Control, Log, LogFile, LogOptions, LogReader, MIN_SEGMENT_BYTES, redo_codec};
use crate::page::{Lsn, PAGE_SIZE};
use crate::random::Random;
use crate::transaction::TransactionId;

/// Reads the bytes as a frame of the log. What can be read says the same when it is written and read again.
pub fn log_frame(bytes: &[u8]) {
    let Ok(length) = frame::length(bytes) else {
        return;
    };
    let Ok(Frame::MiniTransaction { note, mut changes }) = frame::decode(&bytes[..length]) else {
        return;
    };
    let mut scratch = [Box::new([0; PAGE_SIZE]), Box::new([0; PAGE_SIZE])];
    let mut written = Vec::new();
    frame::encode_mini_transaction(&mut written, note, std::iter::empty());
    let Ok(Frame::MiniTransaction { note: read, .. }) = frame::decode(&written) else {
        panic!("a frame that was written cannot be read");
    };
    assert_eq!(read, note);
    while !changes.is_empty() {
        let Ok((page, record)) = redo_codec::decode(&mut changes, &mut scratch[0]) else {
            return;
        };
        written.clear();
        redo_codec::encode(&mut written, page, &record);
        let mut reader = Reader(&written);
        let Ok((again, record)) = redo_codec::decode(&mut reader, &mut scratch[1]) else {
            panic!("a change that was written cannot be read");
        };
        let mut rewritten = Vec::new();
        redo_codec::encode(&mut rewritten, again, &record);
        assert!(reader.is_empty() && written == rewritten);
    }
}

/// Frames of the log that [`damaged_log`] damages.
const FRAMES: u64 = 200;

/// Damages a log as the bytes say, five for each bit (its byte in the file, and which bit), and reads it. What is read
/// is the beginning of what was written.
pub fn damaged_log(bytes: &[u8]) {
    let disk: Arc<SimulatedDisk> = SimulatedDisk::new(SimulationOptions::new(1));
    let as_disk: Arc<dyn Disk> = disk.clone();
    let id = as_disk.open("log").expect("a disk without faults");
    let file = Log::file(&as_disk, id, MIN_SEGMENT_BYTES);
    write_log(&file);
    let control = Control::read(&file).expect("a disk without faults");
    let control = control.expect("the log has begun");
    let genuine = read_log(&file, &control).expect("it is whole");
    let length = as_disk.length(id).expect("a disk without faults");
    for damage in bytes.chunks_exact(5) {
        let at = u32::from_le_bytes([damage[0], damage[1], damage[2], damage[3]]);
        disk.flip_stored_bit(id, u64::from(at) % length, damage[4]);
    }
    // The head may be damaged as well: then there is no saying where the log begins.
    drop(Control::read(&file));
    if let Some(found) = read_log(&file, &control) {
        assert!(
            genuine.starts_with(&found),
            "more was read than was written"
        );
    }
}

fn write_log(file: &LogFile) {
    let options = LogOptions {
        limit_bytes: 4 * MIN_SEGMENT_BYTES,
        archive_lag_bytes: None,
        follow_lag_bytes: None,
        buffer_bytes: 1 << 20,
    };
    let log = Log::create(file.clone(), options, 1, None).expect("a disk without faults");
    let mut random = Random::new(2);
    for id in 0..FRAMES {
        let mut frame = Vec::new();
        let transaction = TransactionId(random.next() >> (id % 64));
        frame::put_commit(&mut frame, transaction, id, (id % 3 == 0).then_some(id));
        log.append(&frame);
        if random.below(4) == 0 {
            log.flush_to(log.end()).expect("a disk without faults");
        }
    }
    log.flush_to(log.end()).expect("a disk without faults");
}

/// The bytes of the log, if there is a log.
fn read_log(file: &LogFile, control: &Control) -> Option<Vec<u8>> {
    let mut reader = LogReader::open(file, control).ok()?;
    let mut found = Vec::new();
    while let Some((first, bytes)) = reader.next_chunk().ok()? {
        assert_eq!(Lsn(control.redo_start.0 + found.len() as u64), first);
        found.extend_from_slice(&bytes);
    }
    Some(found)
}

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::frame::Note;
    use crate::log::redo::RedoRecord;
    use crate::node::NodeMut;
    use crate::page::{Page, PageId, TreeId};
    use crate::transaction::Change;

    fn some_bytes(random: &mut Random, longest: u64) -> Vec<u8> {
        (0..random.below(longest))
            .map(|_| match random.below(2) {
                0 => random.below(16) as u8,
                _ => random.next() as u8,
            })
            .collect()
    }

    fn some_frame(random: &mut Random) -> Vec<u8> {
        let (key, value) = (some_bytes(random, 30), some_bytes(random, 60));
        let note = Note::Change {
            transaction: TransactionId(random.next()),
            tree: TreeId(random.next()),
            change: Change::Update,
            key: &key,
            before: &value,
            start: 0,
        };
        let mut node = Page::zeroed();
        NodeMut(&mut node).format(0, &key, None);
        NodeMut(&mut node).insert(0, b"suffix", &value, false);
        let mut image = Box::new([0; PAGE_SIZE]);
        image.copy_from_slice(node.bytes());
        let records = [
            RedoRecord::InsertEntry {
                slot: random.below(100) as usize,
                suffix: &key,
                value: &value,
            },
            RedoRecord::FreePage { extent: 3, page: 9 },
            RedoRecord::TruncateNode {
                count: 7,
                high_fence: &key,
            },
            RedoRecord::WriteNode {
                tree: TreeId(9),
                image: &image,
            },
        ];
        let mut frame = Vec::new();
        let changes = records.iter().map(|record| (PageId(77), record));
        let count = random.below(records.len() as u64) as usize;
        frame::encode_mini_transaction(&mut frame, note, changes.take(count));
        frame
    }

    #[test]
    fn no_bytes_make_the_frame_codec_panic() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            log_frame(&some_bytes(&mut random, 300));
            let mut frame = some_frame(&mut random);
            for _ in 0..random.below(4) {
                let at = random.below(frame.len() as u64) as usize;
                frame[at] ^= 1 << random.below(8);
            }
            log_frame(&frame);
        }
    }

    #[test]
    fn a_damaged_log_is_read_up_to_the_damage() {
        let mut random = Random::new(1);
        damaged_log(&[]);
        for _ in 0..100 {
            damaged_log(&some_damage(&mut random));
        }
    }

    /// Some damage, most of it in the first blocks, where the chunks are.
    fn some_damage(random: &mut Random) -> Vec<u8> {
        let count = 1 + random.below(3);
        let damage = |_| {
            let reach = if random.below(4) == 0 {
                1 << 20
            } else {
                40 * 4096
            };
            let at = (random.below(reach) as u32).to_le_bytes();
            [at[0], at[1], at[2], at[3], random.next() as u8]
        };
        (0..count).flat_map(damage).collect()
    }

    #[test]
    #[ignore = "goes on for SHEAF_FUZZ_SECONDS"]
    fn fuzz_log_frame() {
        driver::run("log_frame", log_frame, |next| {
            some_frame(&mut Random::new(next()))
        });
    }

    #[test]
    #[ignore = "goes on for SHEAF_FUZZ_SECONDS"]
    fn fuzz_damaged_log() {
        driver::run("damaged_log", damaged_log, |next| {
            some_damage(&mut Random::new(next()))
        });
    }
}
