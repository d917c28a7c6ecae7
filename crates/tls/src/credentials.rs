//! What one end shows, and whom it believes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runtime::Clock;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme};

use crate::files::{Contents, TlsFiles};
use crate::{TlsError, reasons};

/// Must the certificate of the side that is connected to name its address?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCheck {
    /// Its subject alternative names must have the address: one of the CA's other certificates does not do.
    Address,
    /// Any certificate of the CA does.
    None,
}

/// A certificate with its key, the CAs that are believed, and all that follows from them for a new talk.
#[derive(Debug)]
pub struct Credentials {
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
}

impl Credentials {
    /// Of what was read; checked as another end will check it, so that what nobody would take is refused here.
    pub(crate) fn make(
        files: &TlsFiles,
        contents: &Contents,
        names: NameCheck,
        clock: &Arc<dyn Clock>,
    ) -> Result<Credentials, TlsError> {
        let chain = certificates(&files.certificate, "certificate", &contents.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key)
            .map_err(|error| not_pem(&files.key, "private key", &error))?;
        let mut roots = RootCertStore::empty();
        for authority in certificates(&files.authorities, "CA's certificate", &contents.authorities)? {
            roots.add(authority).map_err(|error| unfit(&files.authorities, &error))?;
        }
        let maker = Maker { provider: Arc::new(ring::default_provider()), roots: Arc::new(roots), names };
        let clock: Arc<dyn TimeProvider> = Arc::new(OurTime(Arc::clone(clock)));
        maker.check(&chain, &*clock).map_err(|error| unfit(&files.certificate, &error))?;
        let fail = |error| unfit(&files.key, &error);
        Ok(Credentials {
            client: maker.client(&chain, &key, Arc::clone(&clock)).map_err(fail)?,
            server: maker.server(chain, key, clock).map_err(fail)?,
        })
    }
}

fn certificates(
    path: &Path,
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(not_pem(path, what, &pem::Error::NoItemsFound)),
        Err(error) => Err(not_pem(path, what, &error)),
    }
}

fn not_pem(path: &Path, what: &'static str, error: &pem::Error) -> TlsError {
    TlsError::Pem { path: path.to_owned(), what, problem: reasons::of_pem(error) }
}

fn unfit(path: &Path, error: &Error) -> TlsError {
    let problem = match error {
        Error::InvalidCertificate(problem) => {
            format!("this certificate {}", reasons::of_certificate(problem))
        }
        other => reasons::in_words(other),
    };
    TlsError::Unfit { path: path.to_owned(), problem }
}

/// What both sides of credentials are made of.
struct Maker {
    provider: Arc<CryptoProvider>,
    roots: Arc<RootCertStore>,
    names: NameCheck,
}

impl Maker {
    /// Would another end with the same CAs take this certificate, on either side?
    fn check(&self, chain: &[CertificateDer<'static>], clock: &dyn TimeProvider) -> Result<(), Error> {
        let (own, between) = chain.split_first().expect("a chain has one at least");
        let now = clock.current_time().ok_or(Error::FailedToGetCurrentTime)?;
        self.client_verifier()?.verify_client_cert(own, between, now)?;
        self.signed(&ParsedCertificate::try_from(own)?, between, now)
    }

    fn signed(
        &self,
        certificate: &ParsedCertificate<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(certificate, &self.roots, between, now, algorithms)
    }

    fn client_verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let (roots, provider) = (Arc::clone(&self.roots), Arc::clone(&self.provider));
        WebPkiClientVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))
    }

    fn client(
        &self,
        chain: &[CertificateDer<'static>],
        key: &PrivateKeyDer<'static>,
        clock: Arc<dyn TimeProvider>,
    ) -> Result<Arc<ClientConfig>, Error> {
        let (roots, provider) = (Arc::clone(&self.roots), Arc::clone(&self.provider));
        let builder = ClientConfig::builder_with_details(Arc::clone(&provider), clock)
            .with_protocol_versions(&[&TLS13])?;
        let builder = match self.names {
            NameCheck::Address => {
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
                builder.with_webpki_verifier(verifier.map_err(|error| Error::General(error.to_string()))?)
            }
            NameCheck::None => {
                let maker = Maker { provider, roots, names: self.names };
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyName(maker)))
            }
        };
        let mut config = builder.with_client_auth_cert(chain.to_vec(), key.clone_key())?;
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// Nothing is resumed: each talk looks at the certificates, and at what o'clock it is.
    fn server(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        clock: Arc<dyn TimeProvider>,
    ) -> Result<Arc<ServerConfig>, Error> {
        let mut config = ServerConfig::builder_with_details(Arc::clone(&self.provider), clock)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(self.client_verifier()?)
            .with_single_cert(chain, key)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// Believes any certificate of the CAs, whatever names it has.
struct AnyName(Maker);

impl std::fmt::Debug for AnyName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AnyName")
    }
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.signed(&ParsedCertificate::try_from(shown)?, between, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _shown: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("there is no TLS 1.2 here".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, shown, signed, &self.0.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The node's clock, for who looks whether a certificate is valid now.
#[derive(Debug)]
struct OurTime(Arc<dyn Clock>);

impl TimeProvider for OurTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.now_seconds()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
