//! What a client has not read of an answer, in a temporary file: it is written behind, and read in front.

use std::io;

use sheaf_storage::TempFile;

/// Bytes that are read of a file at a time.
const PIECE_BYTES: usize = 64 << 10;

/// What a peer has not read, in a file.
pub(super) struct Unread {
    file: TempFile,
    /// Bytes of the file that have been in `piece`.
    read: u64,
    piece: Vec<u8>,
    /// Of the piece.
    sent: usize,
}

impl Unread {
    pub(super) fn new(file: TempFile) -> Unread {
        Unread {
            file,
            read: 0,
            piece: Vec::new(),
            sent: 0,
        }
    }

    /// Bytes that have not been sent.
    pub(super) fn left(&self) -> usize {
        (self.file.length() - self.read) as usize + self.piece.len() - self.sent
    }

    /// Where what comes next is put.
    pub(super) fn file(&self) -> &TempFile {
        &self.file
    }

    /// So many bytes of [what is next](Self::next) have been sent.
    pub(super) fn note_sent(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// What is to be sent next; empty at the end.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        if self.sent == self.piece.len() {
            let length = PIECE_BYTES.min((self.file.length() - self.read) as usize);
            self.piece.resize(length, 0);
            self.sent = 0;
            let read = self.file.read_exact_at(&mut self.piece, self.read);
            read.map_err(|error| {
                tracing::error!(%error, "rows that a client did not read are lost");
                io::Error::from(io::ErrorKind::BrokenPipe)
            })?;
            self.read += length as u64;
        }
        Ok(&self.piece[self.sent..])
    }
}
