//! Certificates for tests, made as they are needed.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType, date_time_ymd,
};

/// A CA.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// What one node shows, in PEM.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// What a certificate says.
#[derive(Clone, Debug)]
pub struct Says {
    /// Which addresses it names.
    pub addresses: Vec<IpAddr>,
    /// The first years in which it is valid and not valid any more.
    pub years: [i32; 2],
    /// What it is for.
    pub uses: Vec<ExtendedKeyUsagePurpose>,
}

impl Says {
    /// It is for a node at that address, in this century.
    pub fn of(address: IpAddr) -> Says {
        let uses = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Says { addresses: vec![address], years: [1970, 2100], uses }
    }
}

impl Authority {
    /// A new one; others of the same name are other ones.
    ///
    /// # Panics
    /// No key can be made.
    pub fn new(name: &str) -> Authority {
        let mut says = CertificateParams::default();
        says.distinguished_name.push(DnType::CommonName, name);
        says.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Authority(CertifiedIssuer::self_signed(says, key).expect("a certificate"))
    }

    /// Its certificate, in PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate of this CA, and its key.
    ///
    /// # Panics
    /// There is no such certificate.
    pub fn shown(&self, says: &Says) -> Shown {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "node");
        params.subject_alt_names = says.addresses.iter().copied().map(SanType::IpAddress).collect();
        params.not_before = date_time_ymd(says.years[0], 1, 1);
        params.not_after = date_time_ymd(says.years[1], 1, 1);
        params.extended_key_usages.clone_from(&says.uses);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Shown { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}
