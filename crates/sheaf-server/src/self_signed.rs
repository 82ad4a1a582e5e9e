//! A certificate that the server makes for itself, so that clients can encrypt what they send without any
//! configuration. MySQL does so when it starts with an empty directory.
//!
//! It protects against eavesdroppers, not against impostors of the server: no authority vouches for it. A client that
//! has got a copy of it by another way can check it (`--ssl-ca`), as it is its own authority.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rcgen::{CertificateParams, DnType, KeyPair};

use crate::tls::TlsOptions;

/// The names that MySQL has for these files.
const CERTIFICATE_FILE: &str = "server-cert.pem";
const KEY_FILE: &str = "server-key.pem";
const COMMON_NAME: &str = "Sheaf auto-generated server certificate";
/// The names that the certificate is for: it serves clients of this machine. Other clients use no name that this one
/// could know.
const SUBJECTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl TlsOptions {
    /// The certificate and the key that lie in `directory`, which are made if neither is there.
    ///
    /// # Errors
    /// They cannot be made or written; or only one of them is there, and it is unknown what became of the other.
    pub fn self_signed(directory: &Path) -> io::Result<TlsOptions> {
        let options = TlsOptions {
            certificate: directory.join(CERTIFICATE_FILE),
            key: directory.join(KEY_FILE),
        };
        match (options.certificate.exists(), options.key.exists()) {
            (true, true) => {}
            (false, false) => make(&options).map_err(|error| {
                let place = directory.display();
                io::Error::other(format!(
                    "no TLS certificate can be made in {place}: {error}"
                ))
            })?,
            (has_certificate, _) => {
                let (there, absent) = match has_certificate {
                    true => (CERTIFICATE_FILE, KEY_FILE),
                    false => (KEY_FILE, CERTIFICATE_FILE),
                };
                return Err(io::Error::other(format!(
                    "{there} is in {} without {absent}: remove it, and both are made anew",
                    directory.display()
                )));
            }
        }
        Ok(options)
    }
}

fn make(options: &TlsOptions) -> io::Result<()> {
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut parameters =
        CertificateParams::new(SUBJECTS.map(String::from)).map_err(io::Error::other)?;
    parameters
        .distinguished_name
        .push(DnType::CommonName, COMMON_NAME);
    let certificate = parameters.self_signed(&key).map_err(io::Error::other)?;
    // The key first: a certificate is there only if its key is.
    write_new(&options.key, 0o600, &key.serialize_pem())?;
    write_new(&options.certificate, 0o644, &certificate.pem())
}

/// Writes a file that is not there, as a whole or not at all.
fn write_new(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    // What an earlier start has left.
    let _ = fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_certificate_is_made_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = TlsOptions::self_signed(directory.path()).expect("it is writable");
        options.load().expect("rustls takes it");
        let key = fs::read(&options.key).expect("it is there");
        let mode = fs::metadata(&options.key)
            .expect("it is there")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let again = TlsOptions::self_signed(directory.path()).expect("they are there");
        assert_eq!(fs::read(&again.key).expect("it is there"), key);
        let names: Vec<_> = fs::read_dir(directory.path())
            .expect("a directory")
            .collect();
        assert_eq!(names.len(), 2, "nothing else is left");
    }

    #[test]
    fn half_of_a_pair_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = TlsOptions::self_signed(directory.path()).expect("it is writable");
        fs::remove_file(&options.key).expect("it is there");
        let error = TlsOptions::self_signed(directory.path()).expect_err("the key is gone");
        assert!(error.to_string().contains("server-key.pem"), "{error}");
        fs::remove_file(&options.certificate).expect("it is there");
        TlsOptions::self_signed(directory.path()).expect("both are made anew");
        let absent = directory.path().join("absent");
        TlsOptions::self_signed(&absent).expect_err("there is no such directory");
    }
}
