//! Disk operations by a pool of threads that make plain system calls.
//!
//! For kernels that forbid io_uring and file systems that refuse direct I/O. Workers take operations from one queue;
//! a thread that waits takes operations as well instead of sleeping, so that a single read costs no thread switch.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::blocking::Files;
use crate::disk::{Buffers, Disk, FileId, Operation, Token};
use crate::error::{Result, StorageError};
use crate::sync::{self, Condvar, Mutex, thread};

/// Workers: the depth at which a device is kept busy.
const WORKERS: usize = 16;

/// See the [module](self).
pub struct ThreadPoolDisk {
    shared: Arc<Shared>,
    workers: Vec<thread::JoinHandle<()>>,
}

struct Shared {
    files: Files,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    operations: VecDeque<(Operation, Token)>,
    closing: bool,
}

impl ThreadPoolDisk {
    /// A disk for the files of `directory`, past the page cache if `direct`.
    pub fn open(directory: &Path, direct: bool) -> Result<ThreadPoolDisk> {
        let shared = Arc::new(Shared {
            files: Files::new(directory, direct),
            queue: Mutex::default(),
            arrived: Condvar::new(),
        });
        let mut disk = ThreadPoolDisk {
            shared,
            workers: Vec::with_capacity(WORKERS),
        };
        for number in 0..WORKERS {
            let shared = disk.shared.clone();
            let worker = thread::Builder::new()
                .name(format!("disk-{number}"))
                .spawn(move || shared.work())
                .map_err(|error| StorageError::io("thread start", "the disk", 0, error))?;
            disk.workers.push(worker);
        }
        Ok(disk)
    }
}

impl Shared {
    fn work(&self) {
        loop {
            let mut queue = self.queue.lock();
            let next = loop {
                if let Some(next) = queue.operations.pop_front() {
                    break next;
                }
                if queue.closing {
                    return;
                }
                queue = self.arrived.wait(queue);
            };
            drop(queue);
            self.perform(next);
        }
    }

    fn perform(&self, (mut operation, token): (Operation, Token)) {
        let result = self.files.execute(&mut operation);
        token.complete(result, operation.into_buffers());
    }
}

impl Disk for ThreadPoolDisk {
    fn open(&self, name: &str) -> Result<FileId> {
        self.shared.files.open(name)
    }

    fn file_name(&self, file: FileId) -> String {
        self.shared.files.name(file)
    }

    fn length(&self, file: FileId) -> Result<u64> {
        self.shared.files.length(file)
    }

    fn submit(&self, operations: Vec<(Operation, Token)>) {
        let single = operations.len() == 1;
        self.shared.queue.lock().operations.extend(operations);
        if single {
            self.shared.arrived.notify_one();
        } else {
            self.shared.arrived.notify_all();
        }
    }

    fn reap(&self) -> usize {
        // Workers deliver what they complete; nothing is ever left to be delivered.
        0
    }

    fn wait(&self, _file: FileId, _offset: u64, done: &dyn Fn() -> bool) {
        while !done() {
            // The newest operation first: it is most likely the one that this thread has just submitted.
            let next = self.shared.queue.lock().operations.pop_back();
            match next {
                Some(next) => self.shared.perform(next),
                // A worker has it: its completion unparks this thread.
                None => sync::waiting(thread::park),
            }
        }
    }

    fn execute(&self, mut operation: Operation) -> (io::Result<()>, Option<Buffers>) {
        let result = sync::waiting(|| self.shared.files.execute(&mut operation));
        (result, operation.into_buffers())
    }
}

impl Drop for ThreadPoolDisk {
    fn drop(&mut self) {
        self.shared.queue.lock().closing = true;
        self.shared.arrived.notify_all();
        let me = thread::current().id();
        for worker in self.workers.drain(..) {
            // The last owner may be a completion that runs on a worker: that worker ends by itself.
            if worker.thread().id() != me {
                // A worker that panicked has nothing left to wait for.
                let _ = worker.join();
            }
        }
    }
}
