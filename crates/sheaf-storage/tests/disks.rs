//! The disks on real files, and the pool on the disks.
#![cfg(not(feature = "simulation"))]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sheaf_storage::disk::{
    self, AlignedBuffer, Buffers, Completion, DISK_BLOCK_BYTES, Operation, open_directory,
};
use sheaf_storage::pages::{BufferPool, PoolOptions};
use sheaf_storage::{Disk, DiskKind, FileId, Lsn, PAGE_SIZE, PageId, StorageError};

/// Every disk that this machine has, on its own temporary directory.
fn disks() -> Vec<(&'static str, tempfile::TempDir, Arc<dyn Disk>)> {
    let kinds = [
        ("io_uring", DiskKind::IoUring),
        ("threads", DiskKind::ThreadPool),
    ];
    let mut disks = Vec::new();
    for (name, kind) in kinds {
        // In the build directory, which is on a real file system more often than /tmp.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        match open_directory(directory.path(), kind) {
            Ok(disk) => disks.push((name, directory, disk)),
            Err(error) => eprintln!("{name} is not tested: {error}"),
        }
    }
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let buffered = disk::thread_pool::ThreadPoolDisk::open(directory.path(), false).unwrap();
    disks.push(("buffered threads", directory, Arc::new(buffered)));
    disks
}

fn block(value: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::zeroed(DISK_BLOCK_BYTES).unwrap();
    buffer.fill(value);
    buffer
}

fn write(disk: &dyn Disk, file: FileId, offset: u64, value: u8) -> Result<(), StorageError> {
    let buffers = Buffers::Owned(block(value));
    disk::run(
        disk,
        Operation::Write {
            file,
            offset,
            buffers,
        },
    )
    .map(drop)
}

/// The value that fills the block at `offset`.
fn read(disk: &dyn Disk, file: FileId, offset: u64) -> Result<u8, StorageError> {
    let buffers = Buffers::Owned(block(0xee));
    match disk::run(
        disk,
        Operation::Read {
            file,
            offset,
            buffers,
        },
    )? {
        Some(Buffers::Owned(buffer)) => {
            assert!(buffer.iter().all(|&byte| byte == buffer[0]));
            Ok(buffer[0])
        }
        _ => panic!("a read gives its buffer back"),
    }
}

#[test]
fn what_was_written_is_read() {
    for (name, _directory, disk) in disks() {
        let file = disk.open("data").unwrap();
        let other = disk.open("other").unwrap();
        assert_eq!(disk.open("data").unwrap(), file);
        assert_eq!(disk.file_name(other), "other");
        for block in 0..20 {
            write(&*disk, file, block * DISK_BLOCK_BYTES as u64, block as u8).unwrap();
        }
        disk::run(&*disk, Operation::Sync { file }).unwrap();
        assert_eq!(disk.length(file).unwrap(), 20 * DISK_BLOCK_BYTES as u64);
        assert_eq!(disk.length(other).unwrap(), 0);
        for block in 0..20 {
            let value = read(&*disk, file, block * DISK_BLOCK_BYTES as u64).unwrap();
            assert_eq!(value, block as u8, "{name}");
        }
    }
}

#[test]
fn a_file_grows_is_zeroed_and_cut() {
    const MIB: u64 = 1 << 20;
    for (name, _directory, disk) in disks() {
        let file = disk.open("data").unwrap();
        disk::run(
            &*disk,
            Operation::Allocate {
                file,
                length: 4 * MIB,
            },
        )
        .unwrap();
        disk::run(&*disk, Operation::Allocate { file, length: MIB }).unwrap();
        assert_eq!(
            disk.length(file).unwrap(),
            4 * MIB,
            "{name}: allocating never shrinks"
        );
        assert_eq!(read(&*disk, file, 3 * MIB).unwrap(), 0);
        for offset in [0, MIB, 2 * MIB] {
            write(&*disk, file, offset, 7).unwrap();
        }
        disk::run(
            &*disk,
            Operation::Zero {
                file,
                offset: MIB,
                length: MIB,
            },
        )
        .unwrap();
        disk::run(
            &*disk,
            Operation::Punch {
                file,
                offset: 2 * MIB,
                length: MIB,
            },
        )
        .unwrap();
        let values = [0, MIB, 2 * MIB].map(|offset| read(&*disk, file, offset).unwrap());
        assert_eq!(values, [7, 0, 0], "{name}");
        disk::run(
            &*disk,
            Operation::SetLength {
                file,
                length: 2 * MIB,
            },
        )
        .unwrap();
        assert_eq!(disk.length(file).unwrap(), 2 * MIB);
    }
}

#[test]
fn reading_past_the_end_is_an_error_that_names_the_file() {
    for (name, _directory, disk) in disks() {
        let file = disk.open("data").unwrap();
        write(&*disk, file, 0, 1).unwrap();
        match read(&*disk, file, DISK_BLOCK_BYTES as u64).unwrap_err() {
            StorageError::Io {
                operation,
                file,
                offset,
                source,
            } => {
                assert_eq!(
                    (operation, file.as_str(), offset),
                    ("read", "data", 4096),
                    "{name}"
                );
                assert_eq!(source.kind(), io::ErrorKind::UnexpectedEof);
            }
            error => panic!("{error}"),
        }
        assert!(
            read(&*disk, FileId(99), 0).is_err(),
            "{name}: there is no file 99"
        );
    }
}

/// Counts completions; wakes nobody.
struct Count(AtomicUsize);

impl Completion for Count {
    fn complete(&self, result: io::Result<()>, buffers: Option<Buffers>) {
        result.unwrap();
        assert!(matches!(buffers, Some(Buffers::Owned(_))));
        self.0.fetch_add(1, Ordering::Release);
    }
}

#[test]
fn more_operations_than_the_device_takes_at_a_time_all_complete() {
    for (name, _directory, disk) in disks() {
        let file = disk.open("data").unwrap();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let operations = (0..500)
            .map(|block| {
                let offset = block * 16 * DISK_BLOCK_BYTES as u64;
                let buffers = Buffers::Owned(self::block(block as u8));
                let token: disk::Token = count.clone();
                (
                    Operation::Write {
                        file,
                        offset,
                        buffers,
                    },
                    token,
                )
            })
            .collect();
        disk.submit(operations);
        while count.0.load(Ordering::Acquire) < 500 {
            disk.reap();
            std::thread::yield_now();
        }
        for block in 0..500 {
            let offset = block * 16 * DISK_BLOCK_BYTES as u64;
            assert_eq!(read(&*disk, file, offset).unwrap(), block as u8, "{name}");
        }
    }
}

#[test]
fn a_disk_that_is_dropped_completes_what_is_in_flight() {
    for (name, _directory, disk) in disks() {
        let file = disk.open("data").unwrap();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let operations = (0..200)
            .map(|block| {
                let buffers = Buffers::Owned(self::block(1));
                let token: disk::Token = count.clone();
                let offset = block * DISK_BLOCK_BYTES as u64;
                (
                    Operation::Write {
                        file,
                        offset,
                        buffers,
                    },
                    token,
                )
            })
            .collect();
        disk.submit(operations);
        drop(disk);
        assert_eq!(count.0.load(Ordering::Acquire), 200, "{name}");
    }
}

#[test]
fn many_threads_wait_and_reap_for_each_other() {
    for (name, _directory, disk) in disks() {
        let file = disk.open("data").unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let disk = &disk;
                scope.spawn(move || {
                    for round in 0..50 {
                        // Different stretches, so that every ring has leaders and followers.
                        let offset = (thread * 50 + round) * (1 << 18);
                        write(&**disk, file, offset, thread as u8).unwrap();
                        assert_eq!(read(&**disk, file, offset).unwrap(), thread as u8, "{name}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_pool_works_on_every_disk() {
    for (name, _directory, disk) in disks() {
        let pages = 400u64;
        let file = disk.open("data").unwrap();
        let open = || {
            let options = PoolOptions {
                max_pages: 1 << 20,
                ..PoolOptions::new(2 << 20)
            };
            BufferPool::open(disk.clone(), file, options).unwrap()
        };
        let pool = open();
        pool.extend_to(pages).unwrap();
        for page in 0..pages {
            let mut guard = pool.create(PageId(page)).unwrap();
            guard.set_u64_at(PAGE_SIZE - 8, page);
            guard.mark_dirty(Lsn(1));
        }
        pool.close().unwrap();
        drop(pool);

        let pool = open();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let pool = &pool;
                scope.spawn(move || {
                    for start in (0..pages).step_by(8) {
                        let start = (start + thread * 96) % pages;
                        let hint: Vec<PageId> = (start..start + 8).map(PageId).collect();
                        pool.prefetch(&hint);
                        for page in start..start + 8 {
                            let guard = pool.shared(PageId(page)).unwrap();
                            assert_eq!(guard.u64_at(PAGE_SIZE - 8), page, "{name}");
                        }
                    }
                });
            }
        });
        let counters = pool.counters();
        assert!(
            counters.read_ahead > 0 && counters.pages_read >= pages,
            "{name}: {counters:?}"
        );
        pool.close().unwrap();
    }
}
