//! TLS to the source of a replica: this server is the client.
//!
//! | SOURCE_SSL_CA | SOURCE_SSL_VERIFY_SERVER_CERT | the source's certificate |
//! |---|---|---|
//! | | 0 | is not looked at: nobody can listen, and whoever answers is the source |
//! | a file | 0 | is in the file, or is signed with a certificate of the file |
//! | a file | 1 | is so, and is for SOURCE_HOST |
//!
//! A certificate that is in the file itself is trusted as it is: its dates are not looked at. So is one that a server
//! has made itself, whose copy an administrator has brought here.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use sheaf_sql::replica::link::LinkTls;

use crate::tls::{read_certificates, read_key};

/// Encrypts what goes through a socket to `host`. Both sides have still to agree on keys.
///
/// # Errors
/// A file cannot be used, or the options do not go together.
pub(crate) fn over<S: Read + Write>(
    socket: S,
    host: &str,
    options: &LinkTls,
) -> Result<StreamOwned<ClientConnection, S>, String> {
    let name = match ServerName::try_from(host.to_string()) {
        Ok(name) => name,
        // A socket of this machine.
        Err(_) if !options.verifies_name => ServerName::from(std::net::Ipv4Addr::LOCALHOST),
        Err(_) => return Err(format!("no certificate is for the name '{host}'")),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = SourceCertificate::new(options, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match (options.certificate.as_str(), options.key.as_str()) {
        ("", "") => builder.with_no_client_auth(),
        ("", _) | (_, "") => {
            return Err("SOURCE_SSL_CERT and SOURCE_SSL_KEY go together".to_string());
        }
        (certificate, key) => {
            let text = |error: std::io::Error| error.to_string();
            let certificates = read_certificates(Path::new(certificate)).map_err(text)?;
            let key = read_key(Path::new(key)).map_err(text)?;
            builder
                .with_client_auth_cert(certificates, key)
                .map_err(|error| format!("the TLS certificate in {certificate}: {error}"))?
        }
    };
    // MySQL's clients do not say which name they have asked for.
    config.enable_sni = false;
    let connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    Ok(StreamOwned::new(connection, socket))
}

/// What the source's certificate has to be.
#[derive(Debug)]
struct SourceCertificate {
    /// `None`: any.
    trusted: Option<Trusted>,
    verifies_name: bool,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The certificates of a file.
#[derive(Debug)]
struct Trusted {
    certificates: Vec<CertificateDer<'static>>,
    authorities: Arc<WebPkiServerVerifier>,
}

impl SourceCertificate {
    fn new(options: &LinkTls, provider: &Arc<CryptoProvider>) -> Result<SourceCertificate, String> {
        let trusted = match options.authorities.as_str() {
            "" if options.verifies_name => {
                return Err("SOURCE_SSL_VERIFY_SERVER_CERT = 1 needs SOURCE_SSL_CA".to_string());
            }
            "" => None,
            path => {
                let certificates = read_certificates(Path::new(path));
                let certificates = certificates.map_err(|error| error.to_string())?;
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates.iter().cloned());
                let authorities = WebPkiServerVerifier::builder_with_provider(
                    Arc::new(roots),
                    Arc::clone(provider),
                );
                let authorities = authorities
                    .build()
                    .map_err(|error| format!("the certificates in {path}: {error}"))?;
                Some(Trusted {
                    certificates,
                    authorities,
                })
            }
        };
        Ok(SourceCertificate {
            trusted,
            verifies_name: options.verifies_name,
            algorithms: provider.signature_verification_algorithms,
        })
    }
}

impl ServerCertVerifier for SourceCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else {
            return Ok(ServerCertVerified::assertion());
        };
        if trusted
            .certificates
            .iter()
            .any(|known| known == certificate)
        {
            if self.verifies_name {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let verified = trusted.authorities.verify_server_cert(
            certificate,
            intermediates,
            name,
            ocsp_response,
            now,
        );
        match verified {
            // The name is looked at last.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verifies_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use crate::tls::TlsOptions;

    /// Whether a client and a server with a certificate of its own agree.
    fn agree(server: &TlsOptions, host: &str, client: &LinkTls) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let config = server.load().expect("the certificate is ours");
        let serving = thread::spawn(move || -> io::Result<()> {
            let (mut socket, _) = listener.accept()?;
            let mut connection = rustls::ServerConnection::new(config).map_err(io::Error::other)?;
            while connection.is_handshaking() {
                connection.complete_io(&mut socket)?;
            }
            rustls::Stream::new(&mut connection, &mut socket).write_all(b"hello")
        });
        let socket = TcpStream::connect(address).expect("it listens");
        let mut text = [0; 5];
        let read = over(socket, host, client).and_then(|mut stream| {
            stream
                .read_exact(&mut text)
                .map_err(|error| error.to_string())
        });
        let _ = serving.join().expect("no panic");
        read.map(|()| assert_eq!(&text, b"hello"))
    }

    #[test]
    fn a_source_is_trusted_as_far_as_it_is_said() {
        let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let [server, other] =
            [0, 1].map(|place| TlsOptions::self_signed(directories[place].path()).expect("new"));
        let file = |options: &TlsOptions| options.certificate.display().to_string();
        let any = LinkTls::default();
        let signed = LinkTls {
            authorities: file(&server),
            ..LinkTls::default()
        };
        let named = LinkTls {
            verifies_name: true,
            ..signed.clone()
        };
        for (host, client) in [
            ("db.example", &any),
            ("db.example", &signed),
            ("/run/a.sock", &signed),
            ("localhost", &named),
            ("127.0.0.1", &named),
        ] {
            assert_eq!(agree(&server, host, client), Ok(()), "{host} {client:?}");
        }
        let of_other = LinkTls {
            authorities: file(&other),
            ..LinkTls::default()
        };
        let nameless = LinkTls {
            authorities: String::new(),
            ..named.clone()
        };
        let in_file = |path: &Path| LinkTls {
            authorities: path.display().to_string(),
            ..LinkTls::default()
        };
        let absent = in_file(Path::new("/absent.pem"));
        let endless = in_file(Path::new("/dev/zero"));
        let directory = in_file(directories[0].path());
        let long = directories[0].path().join("long.pem");
        let long_file = std::fs::File::create(&long).expect("new");
        long_file.set_len((1 << 20) + 1).expect("there is room");
        let long = in_file(&long);
        // Nobody writes it.
        let pipe = directories[0].path().join("pipe.pem");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let pipe = in_file(&pipe);
        let endless_key = LinkTls {
            certificate: file(&server),
            key: "/dev/zero".to_string(),
            ..LinkTls::default()
        };
        let half = LinkTls {
            key: server.key.display().to_string(),
            ..LinkTls::default()
        };
        for (host, client, why) in [
            ("localhost", &of_other, "certificate"),
            ("db.example", &named, "not valid for"),
            ("/run/a.sock", &named, "/run/a.sock"),
            ("localhost", &nameless, "SOURCE_SSL_CA"),
            ("localhost", &absent, "/absent.pem"),
            (
                "localhost",
                &endless,
                "/dev/zero cannot be used: it is no regular file",
            ),
            ("localhost", &endless_key, "the TLS key in /dev/zero"),
            ("localhost", &directory, "no regular file"),
            ("localhost", &long, "longer than 1048576 bytes"),
            ("localhost", &pipe, "no regular file"),
            ("localhost", &half, "SOURCE_SSL_CERT"),
        ] {
            let error = agree(&server, host, client).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
    }
}
