//! The files that operators spill to: temporary files of the storage, so that they and those of other parts of a
//! statement have one limit.
//!
//! DataFusion writes a file to its end before it reads it, from the front. Reading goes on in a thread for what blocks,
//! piece by piece, so that a worker does not wait for the disk.

use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{SpillFile, SpillWriter, TempFileFactory};
use futures::{Stream, stream};
use sheaf_memory::of_this_statement;
use sheaf_storage::{TempFile, TempSpace};

use crate::error::{ExecError, temp_file_error, temp_file_io_error};

/// Bytes that are read at a time.
const READ_BYTES: u64 = 256 << 10;
/// Bytes that are written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// Makes spill files in the storage's space for temporary files.
pub(crate) struct SpillFiles(pub Arc<TempSpace>);

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let file = self.0.create("spill").map_err(temp_file_error)?;
        Ok(Arc::new(Spilled(Arc::new(file))))
    }
}

struct Spilled(Arc<TempFile>);

impl SpillFile for Spilled {
    fn size(&self) -> Option<u64> {
        Some(self.0.length())
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let file = Arc::clone(&self.0);
        let pieces = stream::try_unfold((file, 0), |(file, at)| async move {
            let length = READ_BYTES.min(file.length().saturating_sub(at));
            if length == 0 {
                return Ok(None);
            }
            let read = tokio::task::spawn_blocking(of_this_statement(move || {
                let mut bytes = vec![0; length as usize];
                file.read_exact_at(&mut bytes, at)
                    .map_err(temp_file_error)?;
                Ok((Bytes::from(bytes), (file, at + length)))
            }));
            match read.await {
                Ok(piece) => piece.map(Some),
                Err(error) => Err(DataFusionError::External(Box::new(error))),
            }
        });
        Ok(Box::pin(pieces))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(Writer(Arc::clone(&self.0))))
    }
}

struct Writer(Arc<TempFile>);

impl io::Write for Writer {
    /// A batch may have a hundred megabytes. Between its pieces the statement can be stopped.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if sheaf_memory::shall_stop() {
            return Err(io::Error::other(ExecError::Cancelled));
        }
        let piece = &bytes[..bytes.len().min(WRITE_BYTES)];
        self.0.append(piece).map_err(temp_file_io_error)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
