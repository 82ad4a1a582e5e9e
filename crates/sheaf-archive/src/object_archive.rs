//! An archive in object storage.
//!
//! ```text
//!   s3://bucket/prefix/4f0c1d...a2/0000000000000001-000000000040a1f3.log
//!                      history     start            end
//! ```
//!
//! The names are those of an archive in a folder, so one may be copied to the other. An object is created only if there
//! is none of its name: two servers that archive the same history by mistake do not overwrite each other's log. Not
//! every store knows such a condition. On those that do not, the archive looks before it writes, which is no help
//! against two servers at the same moment, and says so when it meets one.
//!
//! The storage engine is synchronous and knows no futures. A thread here drives them; the caller waits, at most
//! [`OPERATION_TIMEOUT`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use sheaf_storage::archive::check_same;
use sheaf_storage::{HistoryId, LogArchive, LogRange, Result, StorageError};
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// An operation that takes longer has failed, and is tried again by the archiver. An object has some megabytes.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(120);

/// See the [module](self).
#[derive(Debug)]
pub struct ObjectArchive {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// As messages name it.
    place: String,
    /// Absent when it is being dropped.
    runtime: Option<Runtime>,
    /// The store has turned out not to know conditions on writes.
    is_unconditional: AtomicBool,
}

impl ObjectArchive {
    /// The archive at a URL, with what the environment says about how to reach it. Nothing is asked of it yet.
    pub fn open(url: &Url) -> Result<ObjectArchive> {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::open_with(url, environment)
    }

    /// As [`open`](Self::open), with settings under the same names; those of other programs are ignored.
    pub fn open_with(
        url: &Url,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<ObjectArchive> {
        let (store, prefix) =
            object_store::parse_url_opts(url, settings).map_err(|error| StorageError::Archive {
                reason: format!("{url}: {error}"),
            })?;
        let place = url.as_str().trim_end_matches('/').to_string();
        Self::on(store.into(), prefix, place)
    }

    /// The archive in a store, whose objects' names begin with `prefix`; messages call it `place`.
    pub fn on(store: Arc<dyn ObjectStore>, prefix: Path, place: String) -> Result<ObjectArchive> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("sheaf-archive-io")
            .enable_all()
            .build()
            .map_err(|error| StorageError::Archive {
                reason: format!("{place}: the start of a thread failed: {error}"),
            })?;
        Ok(ObjectArchive {
            store,
            prefix,
            place,
            runtime: Some(runtime),
            is_unconditional: AtomicBool::new(false),
        })
    }

    fn folder_of(&self, history: HistoryId) -> Path {
        self.prefix.clone().join(history.to_string())
    }

    fn path_of(&self, history: HistoryId, range: LogRange) -> Path {
        self.folder_of(history).join(range.object_name())
    }

    /// Waits for an operation on a name, whatever threads this one belongs to.
    fn wait<T: Send + 'static>(
        &self,
        operation: &str,
        name: &Path,
        future: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<std::result::Result<T, Error>> {
        let failed = |reason: &str| self.failed(operation, name, reason);
        let runtime = self
            .runtime
            .as_ref()
            .ok_or_else(|| failed("it is closed"))?;
        let (sender, receiver) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            let result = tokio::time::timeout(OPERATION_TIMEOUT, future).await;
            // Nobody waits any more if the process ends.
            let _ = sender.send(result);
        });
        match receiver.recv() {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => {
                let seconds = OPERATION_TIMEOUT.as_secs();
                Err(failed(&format!("no answer for {seconds} seconds")))
            }
            Err(_) => Err(failed("its client panicked")),
        }
    }

    fn failed(&self, operation: &str, name: &Path, reason: &str) -> StorageError {
        StorageError::Archive {
            reason: format!("{operation} {} failed: {reason}", self.shown(name)),
        }
    }

    /// A name as messages show it: with the place.
    fn shown(&self, name: &Path) -> String {
        let name = name.as_ref();
        let within = name.strip_prefix(self.prefix.as_ref()).unwrap_or(name);
        format!("{}/{}", self.place, within.trim_start_matches('/'))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let (store, location) = (self.store.clone(), path.clone());
        let read = self.wait("reading", path, async move {
            let found = store.get_opts(&location, GetOptions::default()).await?;
            found.bytes().await
        })?;
        let bytes = read.map_err(|error| self.failed("reading", path, &error.to_string()))?;
        Ok(bytes.to_vec())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        let (store, location) = (self.store.clone(), path.clone());
        let found = self.wait("looking for", path, async move {
            store.head(&location).await.map(|_| ())
        })?;
        match found {
            Ok(()) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed("looking for", path, &error.to_string())),
        }
    }

    fn write(
        &self,
        path: &Path,
        bytes: &[u8],
        mode: PutMode,
    ) -> Result<std::result::Result<(), Error>> {
        let (store, location) = (self.store.clone(), path.clone());
        let payload = PutPayload::from(bytes.to_vec());
        self.wait("writing", path, async move {
            let put = store.put_opts(&location, payload, mode.into()).await;
            put.map(|_| ())
        })
    }
}

impl LogArchive for ObjectArchive {
    fn ranges(&self, history: HistoryId) -> Result<Vec<LogRange>> {
        let folder = self.folder_of(history);
        let (store, prefix) = (self.store.clone(), folder.clone());
        let listed = self.wait("listing", &folder, async move {
            let names = store.list(Some(&prefix)).try_filter_map(|object| {
                let name = object.location.filename();
                let range = name.and_then(LogRange::of_object_name);
                futures::future::ready(Ok(range))
            });
            names.try_collect::<Vec<_>>().await
        })?;
        listed.map_err(|error| self.failed("listing", &folder, &error.to_string()))
    }

    fn put(&self, history: HistoryId, range: LogRange, bytes: &[u8]) -> Result<()> {
        let path = self.path_of(history, range);
        let written = match self.write(&path, bytes, PutMode::Create)? {
            // It may be this very object: the answer to an earlier attempt was lost.
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                return check_same(&self.shown(&path), bytes, &self.read(&path)?);
            }
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                if !self.is_unconditional.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        place = %self.place,
                        "this object store cannot refuse to overwrite an object: two servers on copies of one data \
                         directory must not archive to it"
                    );
                }
                if self.exists(&path)? {
                    return check_same(&self.shown(&path), bytes, &self.read(&path)?);
                }
                self.write(&path, bytes, PutMode::Overwrite)?
            }
            written => written,
        };
        written.map_err(|error| self.failed("writing", &path, &error.to_string()))
    }

    fn get(&self, history: HistoryId, range: LogRange) -> Result<Vec<u8>> {
        self.read(&self.path_of(history, range))
    }

    fn remove(&self, history: HistoryId, range: LogRange) -> Result<()> {
        let path = self.path_of(history, range);
        let (store, location) = (self.store.clone(), path.clone());
        let removed = self.wait(
            "removal of",
            &path,
            async move { store.delete(&location).await },
        )?;
        match removed {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("removal of", &path, &error.to_string())),
        }
    }
}

impl Drop for ObjectArchive {
    fn drop(&mut self) {
        // The last owner may be a future of another runtime, in which nothing may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream::BoxStream;
    use object_store::memory::InMemory;
    use object_store::{
        CopyOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, PutMultipartOptions,
        PutOptions, PutResult,
    };
    use sheaf_storage::{FolderArchive, Lsn, RestoreUntil, Storage, StorageOptions, restore_to};

    use super::*;

    const HISTORY: HistoryId = HistoryId(0xabc);
    const RANGE: LogRange = LogRange {
        start: Lsn(1),
        end: Lsn(0x40_a1f3),
    };

    fn archive_on(store: Arc<dyn ObjectStore>) -> ObjectArchive {
        ObjectArchive::on(store, Path::from("log/of bank"), "memory".to_string()).unwrap()
    }

    fn put_directly(archive: &ObjectArchive, store: &Arc<InMemory>, name: &str, bytes: &[u8]) {
        let (store, path) = (store.clone(), Path::from(name));
        let payload = PutPayload::from(bytes.to_vec());
        let location = path.clone();
        let put = archive.wait("writing", &path, async move {
            store.put(&location, payload).await.map(|_| ())
        });
        put.unwrap().unwrap();
    }

    #[test]
    fn what_was_put_is_found_and_nothing_else() {
        let store = Arc::new(InMemory::new());
        let archive = archive_on(store.clone());
        assert_eq!(archive.ranges(HISTORY).unwrap(), []);
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        for other in ["notes.txt", "1-2.log"] {
            put_directly(
                &archive,
                &store,
                &format!("log/of bank/{HISTORY}/{other}"),
                b"mine",
            );
        }
        assert_eq!(archive.ranges(HISTORY).unwrap(), [RANGE]);
        assert_eq!(archive.get(HISTORY, RANGE).unwrap(), b"bytes");
        assert_eq!(archive.ranges(HistoryId(1)).unwrap(), []);
        let absent = archive.get(HistoryId(1), RANGE).unwrap_err().to_string();
        let name = format!("memory/{}/{}", HistoryId(1), RANGE.object_name());
        assert!(absent.contains(&name), "{absent}");
    }

    #[test]
    fn an_object_is_never_changed() {
        let archive = archive_on(Arc::new(InMemory::new()));
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        let error = archive
            .put(HISTORY, RANGE, b"other")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&RANGE.object_name()) && error.contains("another server"),
            "{error}"
        );
        assert_eq!(archive.get(HISTORY, RANGE).unwrap(), b"bytes");
    }

    #[test]
    fn what_was_removed_is_gone() {
        let archive = archive_on(Arc::new(InMemory::new()));
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        archive.remove(HISTORY, RANGE).unwrap();
        archive.remove(HISTORY, RANGE).unwrap();
        assert_eq!(archive.ranges(HISTORY).unwrap(), []);
    }

    #[test]
    fn it_can_be_asked_and_dropped_within_another_runtime() {
        let outer = Builder::new_current_thread().build().unwrap();
        outer.block_on(async {
            let archive = archive_on(Arc::new(InMemory::new()));
            archive.put(HISTORY, RANGE, b"bytes").unwrap();
            assert_eq!(archive.ranges(HISTORY).unwrap(), [RANGE]);
        });
    }

    /// A store without conditions on writes.
    #[derive(Debug)]
    struct Unconditional(InMemory);

    impl std::fmt::Display for Unconditional {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "Unconditional")
        }
    }

    #[async_trait::async_trait]
    impl ObjectStore for Unconditional {
        async fn put_opts(
            &self,
            location: &Path,
            payload: PutPayload,
            options: PutOptions,
        ) -> object_store::Result<PutResult> {
            match options.mode {
                PutMode::Overwrite => self.0.put_opts(location, payload, options).await,
                PutMode::Create | PutMode::Update(_) => Err(Error::NotImplemented {
                    operation: "a conditional put".to_string(),
                    implementer: "Unconditional".to_string(),
                }),
            }
        }

        async fn put_multipart_opts(
            &self,
            location: &Path,
            options: PutMultipartOptions,
        ) -> object_store::Result<Box<dyn MultipartUpload>> {
            self.0.put_multipart_opts(location, options).await
        }

        async fn get_opts(
            &self,
            location: &Path,
            options: GetOptions,
        ) -> object_store::Result<GetResult> {
            self.0.get_opts(location, options).await
        }

        fn delete_stream(
            &self,
            locations: BoxStream<'static, object_store::Result<Path>>,
        ) -> BoxStream<'static, object_store::Result<Path>> {
            self.0.delete_stream(locations)
        }

        fn list(
            &self,
            prefix: Option<&Path>,
        ) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
            self.0.list(prefix)
        }

        async fn list_with_delimiter(
            &self,
            prefix: Option<&Path>,
        ) -> object_store::Result<ListResult> {
            self.0.list_with_delimiter(prefix).await
        }

        async fn copy_opts(
            &self,
            from: &Path,
            to: &Path,
            options: CopyOptions,
        ) -> object_store::Result<()> {
            self.0.copy_opts(from, to, options).await
        }
    }

    #[test]
    fn a_store_without_conditional_writes_serves_as_well() {
        let archive = archive_on(Arc::new(Unconditional(InMemory::new())));
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        // An answer that was lost, and another server.
        archive.put(HISTORY, RANGE, b"bytes").unwrap();
        let error = archive.put(HISTORY, RANGE, b"other").unwrap_err();
        assert!(error.to_string().contains("another server"), "{error}");
        assert_eq!(archive.get(HISTORY, RANGE).unwrap(), b"bytes");
    }

    /// A database, its archive in object storage, and a restoration from a copy of that in a folder.
    #[test]
    fn a_database_is_restored_from_object_storage_and_from_a_copy_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let archive: Arc<dyn LogArchive> = Arc::new(archive_on(Arc::new(InMemory::new())));
        let options = |archive| StorageOptions {
            pool_bytes: 2 << 20,
            archive,
            ..StorageOptions::default()
        };
        let storage = Storage::open(&at("data"), options(Some(archive.clone()))).unwrap();
        let catalog = storage.catalog_tree();
        let backup = storage
            .backup_to(&at("backup"), &[], &mut |_| Ok(()))
            .unwrap();
        let mut moments = Vec::new();
        for key in 0..20_u8 {
            let mut transaction = storage.begin_transaction();
            catalog.insert(&mut transaction, &[key], b"value").unwrap();
            transaction.commit().unwrap();
            moments.push(storage.newest_commit_time_us());
        }
        storage.close().unwrap();

        let folder = FolderArchive::open(&at("copy")).unwrap();
        for range in archive.ranges(backup.history).unwrap() {
            let object = archive.get(backup.history, range).unwrap();
            folder.put(backup.history, range, &object).unwrap();
        }
        let archives: [&dyn LogArchive; 2] = [&*archive, &folder];
        for (number, archive) in archives.into_iter().enumerate() {
            let restored = at(&format!("restored {number}"));
            let until = RestoreUntil::TimeUs(moments[11]);
            restore_to(
                &at("backup"),
                Some(archive),
                (&restored, &[]),
                until,
                &mut |_| Ok(()),
            )
            .unwrap();
            let storage = Storage::open(&restored, options(None)).unwrap();
            let catalog = storage.catalog_tree();
            let mut value = Vec::new();
            assert!(catalog.get(&[11], &mut value).unwrap());
            assert!(!catalog.get(&[12], &mut value).unwrap());
        }
    }
}
