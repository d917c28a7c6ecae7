//! Why two ends do not talk, in the words of who has to put it right.

use rustls::pki_types::pem;
use rustls::{AlertDescription, CertificateError, Error};

/// What an error of the library comes to; it is about the other side, which is not named.
pub(crate) fn in_words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(problem) => format!("its certificate {}", of_certificate(problem)),
        Error::NoCertificatesPresented => "it shows no certificate".to_owned(),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(_) => "what it sends is not TLS".to_owned(),
        Error::InconsistentKeys(_) => "the key is not that of the certificate".to_owned(),
        other => other.to_string(),
    }
}

/// What is wrong with a certificate, as the end of a sentence about it.
pub(crate) fn of_certificate(problem: &CertificateError) -> String {
    use CertificateError as Problem;
    match problem {
        Problem::UnknownIssuer => "is of no CA that is believed here".to_owned(),
        Problem::Expired | Problem::ExpiredContext { .. } => "has expired".to_owned(),
        Problem::NotValidYet | Problem::NotValidYetContext { .. } => "is not valid yet".to_owned(),
        Problem::NotValidForName => "does not name the address that was connected to".to_owned(),
        Problem::NotValidForNameContext { expected, presented } => format!(
            "does not name the address that was connected to: {}, but {}",
            expected.to_str(),
            match presented.is_empty() {
                true => "none".to_owned(),
                false => presented.join(", "),
            }
        ),
        Problem::InvalidPurpose | Problem::InvalidPurposeContext { .. } => {
            "is not for this use: extendedKeyUsage must have serverAuth and clientAuth".to_owned()
        }
        Problem::BadSignature => "is not signed by the CA that it names".to_owned(),
        Problem::BadEncoding => "can not be read".to_owned(),
        other => format!("is refused: {other}"),
    }
}

/// What is wrong with a file that should be PEM. Nothing of the library's text: that holds bytes of the file, which may
/// be those of a key.
pub(crate) fn of_pem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::NoItemsFound => "no section of it is one",
        pem::Error::IllegalSectionStart { .. } => "the line that begins a section is not whole",
        pem::Error::MissingSectionEnd { .. } => "a section has no line that ends it",
        pem::Error::Base64Decode(_) => "a section is not base64",
        pem::Error::SectionTooLarge => "a section is too long",
        _ => "it can not be read",
    }
}

/// What the other side told at the end.
fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    match alert {
        Alert::UnknownCA => "it does not believe the CA of the certificate shown to it".to_owned(),
        Alert::CertificateExpired => "to it the certificate shown has expired".to_owned(),
        Alert::CertificateRequired => "it wants a certificate and was shown none".to_owned(),
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateUnknown
        | Alert::AccessDenied => format!("it refuses the certificate shown to it ({alert:?})"),
        Alert::HandshakeFailure => "it talks no TLS; it may have been given no certificates".to_owned(),
        other => format!("it gives up ({other:?})"),
    }
}
