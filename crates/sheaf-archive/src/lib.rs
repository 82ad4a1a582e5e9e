//! Where a log can be archived to, by the name of the place.
//!
//! ```text
//!   /archive, file:///archive      a folder                        FolderArchive, of sheaf-storage
//!   s3://bucket/prefix ...         object storage, a bucket        ObjectArchive, here
//! ```
//!
//! The clouds are features of this crate (`s3`, `azure`, `gcs`), because each brings a client for HTTP and TLS. What
//! they need to know, such as keys and a region, they take from the environment, under the names that their own tools
//! use (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT` ...).

mod object_archive;

use std::path::Path;
use std::sync::Arc;

use sheaf_storage::{FolderArchive, LogArchive, Result, StorageError};
use url::Url;

pub use object_archive::ObjectArchive;

/// The archive at a place: the path of a folder, which is made when it is absent, or the URL of a bucket and a prefix.
///
/// # Errors
/// `Archive` if there can be none.
pub fn open_archive(place: &str) -> Result<Arc<dyn LogArchive>> {
    open(place, FolderArchive::open)
}

/// As [`open_archive`], but a folder must be there already: for readers.
pub fn existing_archive(place: &str) -> Result<Arc<dyn LogArchive>> {
    open(place, FolderArchive::existing)
}

fn open(
    place: &str,
    open_folder: impl FnOnce(&Path) -> Result<FolderArchive>,
) -> Result<Arc<dyn LogArchive>> {
    let cannot = |reason: String| StorageError::Archive {
        reason: format!("'{place}' is no place for an archive: {reason}"),
    };
    let folder = match place.split_once("://") {
        None => place,
        Some(("file", path)) => path,
        Some(("memory", _)) => {
            return Err(cannot("memory would be gone with the process".to_string()));
        }
        Some((scheme, _)) => {
            check_scheme(scheme).map_err(cannot)?;
            let url = Url::parse(place).map_err(|error| cannot(error.to_string()))?;
            return Ok(Arc::new(ObjectArchive::open(&url)?));
        }
    };
    Ok(Arc::new(open_folder(Path::new(folder))?))
}

/// The schemes of object storage, and the features that they need.
const SCHEMES: [(&str, &str, bool); 8] = [
    ("s3", "s3", cfg!(feature = "s3")),
    ("s3a", "s3", cfg!(feature = "s3")),
    ("az", "azure", cfg!(feature = "azure")),
    ("azure", "azure", cfg!(feature = "azure")),
    ("abfs", "azure", cfg!(feature = "azure")),
    ("abfss", "azure", cfg!(feature = "azure")),
    ("adl", "azure", cfg!(feature = "azure")),
    ("gs", "gcs", cfg!(feature = "gcs")),
];

/// Says why there can be no archive under this scheme.
fn check_scheme(scheme: &str) -> std::result::Result<(), String> {
    match SCHEMES.into_iter().find(|(known, _, _)| *known == scheme) {
        Some((_, _, true)) => Ok(()),
        Some((_, feature, false)) => Err(format!(
            "this program was built without {scheme}; build it with --features {feature}, or name a folder"
        )),
        None => Err(format!(
            "{scheme} is not known; name a folder, or a bucket with s3, az or gs"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_have_two_names() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join("archive");
        let name = folder.display().to_string();
        let absent = existing_archive(&name).unwrap_err().to_string();
        assert!(absent.contains(&name) && !folder.exists(), "{absent}");
        open_archive(&name).unwrap();
        existing_archive(&name).unwrap();
        assert!(folder.is_dir());
        let url = format!("file://{}/other", directory.path().display());
        open_archive(&url).unwrap();
        assert!(directory.path().join("other").is_dir());
    }

    #[test]
    fn what_cannot_be_says_why() {
        for (place, reason) in [
            ("memory://a", "gone with the process"),
            ("ftp://a/b", "ftp is not known"),
            #[cfg(not(feature = "s3"))]
            ("s3://bucket/log", "--features s3"),
            #[cfg(not(feature = "gcs"))]
            ("gs://bucket/log", "--features gcs"),
            #[cfg(not(feature = "azure"))]
            ("az://bucket/log", "--features azure"),
        ] {
            let error = open_archive(place).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(place), "{error}");
        }
    }
}
