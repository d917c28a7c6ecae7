//! Options of a node in a ring: where other nodes reach it, and whom it asks first.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::choices::{InternodeCompression, InternodeEncryption};
use crate::config::{Config, together};
use crate::error::ConfigError;

/// More tokens make a ring no evener, and every change of it dearer.
const TOKEN_COUNT_MAX: u16 = 256;

/// A node to be asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    /// Where it is.
    pub address: IpAddr,
    /// `None` is `storage_port`.
    pub port: Option<u16>,
}

impl Config {
    /// Where this node listens for others, if it is one of a ring.
    pub fn internode_listen(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.listen_address?, self.storage_port))
    }

    /// Where others are told that this node is.
    pub fn internode_broadcast(&self) -> Option<SocketAddr> {
        let address = self.broadcast_address.or(self.listen_address)?;
        Some(SocketAddr::new(address, self.storage_port))
    }

    /// `seeds`, each with its port.
    pub fn seed_addresses(&self) -> Vec<SocketAddr> {
        let address = |seed: &Seed| SocketAddr::new(seed.address, seed.port.unwrap_or(self.storage_port));
        self.seeds.iter().map(address).collect()
    }

    /// `replace_address` with its port.
    pub fn replaced_address(&self) -> Option<SocketAddr> {
        let replaced = self.replace_address?;
        Some(SocketAddr::new(replaced.address, replaced.port.unwrap_or(self.storage_port)))
    }

    /// Checks how the options of a ring go together.
    pub(crate) fn check_internode(&self) -> Result<(), ConfigError> {
        let Some(listen) = self.internode_listen() else { return self.check_alone() };
        // Who must show a certificate to say anything is no stranger.
        let keeps_strangers_out =
            self.internode_secret_file.is_some() || self.internode_encryption == InternodeEncryption::All;
        if !listen.ip().is_loopback() && !keeps_strangers_out {
            let problem = "not a loopback address, so that strangers could join: give `internode_secret_file`, or \
                           certificates and `internode_encryption` all";
            return Err(together("listen_address", listen.ip().to_string(), problem.to_owned()));
        }
        let is_other = |seed: &SocketAddr| Some(*seed) != self.internode_broadcast();
        if let Some(replaced) = self.replaced_address()
            && !self.seed_addresses().iter().any(is_other)
        {
            let problem = "`seeds` names no other node, which could let this one in".to_owned();
            return Err(together("replace_address", replaced.to_string(), problem));
        }
        self.check_tokens()?;
        self.check_certificates()?;
        for (name, other) in [("listen", self.listen), ("management", self.management)] {
            if is_same_socket(listen, other) {
                let problem =
                    format!("together with `listen_address` the same as `{name}`, which is {other}");
                return Err(together("storage_port", listen.port().to_string(), problem));
            }
        }
        // As in Cassandra: others tell their clients where this node is.
        match self.listen.ip().is_unspecified() && self.broadcast_rpc_address.is_none() {
            true => {
                let problem =
                    "a wildcard address, which clients can not be told: give `broadcast_rpc_address`, too";
                Err(together("listen", self.listen.to_string(), problem.to_owned()))
            }
            false => Ok(()),
        }
    }

    /// As many tokens as there are to be, and none for who takes a place with its tokens.
    fn check_tokens(&self) -> Result<(), ConfigError> {
        let (count, num_tokens) = (self.initial_tokens.len(), self.num_tokens);
        let problem = match self.replaced_address() {
            _ if count == 0 => return Ok(()),
            Some(_) => {
                "of no use with `replace_address`: the tokens are those of the node that is lost".to_owned()
            }
            None if count != usize::from(num_tokens) => {
                format!("{count} given, where `num_tokens` says {num_tokens}")
            }
            None => return Ok(()),
        };
        Err(together("initial_token", self.initial_tokens_text(), problem))
    }

    fn initial_tokens_text(&self) -> String {
        self.initial_tokens.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
    }

    /// Where certificate, key and CAs for talks with other nodes stand, if they are given.
    pub fn internode_tls_files(&self) -> Option<[&Path; 3]> {
        Some([
            self.internode_certificate_file.as_deref()?,
            self.internode_key_file.as_deref()?,
            self.internode_ca_file.as_deref()?,
        ])
    }

    /// All three files or none, and all three where something must be encrypted.
    fn check_certificates(&self) -> Result<(), ConfigError> {
        if self.internode_tls_files().is_some() {
            return Ok(());
        }
        let missing =
            "give `internode_certificate_file`, `internode_key_file` and `internode_ca_file` together";
        if self.internode_encryption != InternodeEncryption::None {
            let word = self.internode_encryption.word();
            return Err(together("internode_encryption", word.to_owned(), missing.to_owned()));
        }
        match self.certificate_files().into_iter().find_map(|(name, path)| Some((name, path?))) {
            Some((name, path)) => Err(together(name, path, missing.to_owned())),
            None => Ok(()),
        }
    }

    fn certificate_files(&self) -> [(&'static str, Option<String>); 3] {
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        [
            ("internode_certificate_file", text(&self.internode_certificate_file)),
            ("internode_key_file", text(&self.internode_key_file)),
            ("internode_ca_file", text(&self.internode_ca_file)),
        ]
    }

    /// A node that no other can reach has no use for what is said of others.
    fn check_alone(&self) -> Result<(), ConfigError> {
        let seeds: Vec<String> = self.seed_addresses().iter().map(SocketAddr::to_string).collect();
        let broadcast = self.broadcast_address.map(|address| address.to_string());
        let secret = self.internode_secret_file.as_ref().map(|path| path.display().to_string());
        let encrypts = self.internode_encryption != InternodeEncryption::None;
        let given = [
            ("seeds", Some(seeds.join(",")).filter(|seeds| !seeds.is_empty())),
            ("broadcast_address", broadcast),
            ("replace_address", self.replaced_address().map(|address| address.to_string())),
            ("initial_token", Some(self.initial_tokens_text()).filter(|tokens| !tokens.is_empty())),
            ("internode_secret_file", secret),
            ("internode_encryption", encrypts.then(|| self.internode_encryption.word().to_owned())),
        ];
        match given.into_iter().chain(self.certificate_files()).find_map(|(name, value)| Some((name, value?)))
        {
            Some((name, value)) => {
                let problem = "of no use without `listen_address`, where other nodes reach this one";
                Err(together(name, value, problem.to_owned()))
            }
            None => Ok(()),
        }
    }
}

/// Can only one of two listeners have what they ask for?
fn is_same_socket(internode: SocketAddr, other: SocketAddr) -> bool {
    internode.port() == other.port() && (internode.ip() == other.ip() || other.ip().is_unspecified())
}

/// One address; nothing is none.
pub(crate) fn parse_address(text: &str) -> Result<Option<IpAddr>, String> {
    match text.trim() {
        "" => Ok(None),
        text => match text.parse() {
            Ok(address) => reachable(address).map(Some),
            Err(_) => Err("not an address, as in 10.0.0.1 or fd00::1".to_owned()),
        },
    }
}

/// An address that others can be told.
fn reachable(address: IpAddr) -> Result<IpAddr, String> {
    match address.is_unspecified() {
        true => Err(format!("{address} is no address that others could reach")),
        false => Ok(address),
    }
}

pub(crate) fn parse_port(text: &str) -> Result<u16, String> {
    match text.trim().parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err("not a port from 1 to 65535".to_owned()),
    }
}

pub(crate) fn parse_seeds(text: &str) -> Result<Vec<Seed>, String> {
    match text.trim() {
        "" => Ok(Vec::new()),
        text => text.split(',').map(|seed| parse_seed(seed.trim())).collect(),
    }
}

fn parse_seed(text: &str) -> Result<Seed, String> {
    let (address, port) = match (text.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
        (Ok(address), _) => (address, None),
        (_, Ok(seed)) if seed.port() > 0 => (seed.ip(), Some(seed.port())),
        _ => return Err("not addresses with a port or without, as in 10.0.0.1 or 10.0.0.1:7000".to_owned()),
    };
    Ok(Seed { address: reachable(address)?, port })
}

pub(crate) fn parse_replaced(text: &str) -> Result<Option<Seed>, String> {
    match text.trim() {
        "" => Ok(None),
        text => parse_seed(text).map(Some).map_err(|problem| match problem.starts_with("not addresses") {
            true => "not an address with a port or without, as in 10.0.0.1 or 10.0.0.1:7000".to_owned(),
            false => problem,
        }),
    }
}

pub(crate) fn parse_token_count(text: &str) -> Result<u16, String> {
    match text.trim().parse::<u16>() {
        Ok(count @ 1..=TOKEN_COUNT_MAX) => Ok(count),
        _ => Err(format!("not a whole number from 1 to {TOKEN_COUNT_MAX}")),
    }
}

pub(crate) fn parse_tokens(text: &str) -> Result<Vec<i64>, String> {
    // The least one belongs to nobody.
    let token = |text: &str| text.trim().parse::<i64>().ok().filter(|token| *token != i64::MIN);
    let mut tokens = match text.trim() {
        "" => Vec::new(),
        text => text.split(',').map(token).collect::<Option<Vec<i64>>>().ok_or_else(|| {
            format!("not whole numbers from {} to {}, with commas between them", i64::MIN + 1, i64::MAX)
        })?,
    };
    tokens.sort_unstable();
    match tokens.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("{} stands there twice", pair[0])),
        None => Ok(tokens),
    }
}

impl InternodeEncryption {
    /// As it is written.
    fn word(self) -> &'static str {
        match self {
            InternodeEncryption::None => "none",
            InternodeEncryption::Rack => "rack",
            InternodeEncryption::Dc => "dc",
            InternodeEncryption::All => "all",
        }
    }
}

pub(crate) fn parse_encryption(text: &str) -> Result<InternodeEncryption, String> {
    use InternodeEncryption as Encryption;
    [Encryption::None, Encryption::Rack, Encryption::Dc, Encryption::All]
        .into_iter()
        .find(|encryption| encryption.word() == text.trim())
        .ok_or_else(|| "neither none, rack, dc nor all".to_owned())
}

pub(crate) fn parse_compression(text: &str) -> Result<InternodeCompression, String> {
    match text.trim() {
        "none" => Ok(InternodeCompression::None),
        "all" => Ok(InternodeCompression::All),
        _ => Err("neither none nor all".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration that flags make, once it is checked.
    fn checked(flags: &str) -> Result<Config, String> {
        let mut config = Config::default();
        for flag in flags.split_whitespace() {
            let (name, value) = flag.split_once('=').expect("a name and a value");
            config.apply_flag(name, value).map_err(|error| error.to_string())?;
        }
        config.check().map(|()| config).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check_refused(flags: &str, problem: &str) {
        let error = checked(flags).expect_err(flags);
        assert!(error.contains(problem), "{flags}: {error}");
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_node_is_alone_unless_it_is_told_where_others_reach_it() {
        let alone = checked("").unwrap();
        assert_eq!((alone.internode_listen(), alone.internode_broadcast()), (None, None));
        let joined = checked("listen-address=127.0.0.2").unwrap();
        assert_eq!(joined.internode_listen(), Some(address("127.0.0.2:7000")));
        assert_eq!(joined.internode_broadcast(), joined.internode_listen());
        assert_eq!((joined.num_tokens, joined.internode_compression), (16, InternodeCompression::None));
        let told = checked("listen-address=::1 broadcast-address=10.0.0.9 storage-port=7001").unwrap();
        assert_eq!(told.internode_listen(), Some(address("[::1]:7001")));
        assert_eq!(told.internode_broadcast(), Some(address("10.0.0.9:7001")));
    }

    #[test]
    fn a_seed_without_a_port_has_that_of_all_nodes() {
        let config = checked(
            "seeds=10.0.0.1,10.0.0.2:7002,fd00::1,[fd00::2]:7002 storage-port=7001 listen-address=::1",
        );
        let expected = ["10.0.0.1:7001", "10.0.0.2:7002", "[fd00::1]:7001", "[fd00::2]:7002"].map(address);
        assert_eq!(config.unwrap().seed_addresses(), expected);
        let mut config = Config::default();
        config.apply_file("f".as_ref(), "seeds = [\"10.0.0.1\", \"10.0.0.2:7002\"]\nnum_tokens = 4").unwrap();
        assert_eq!(config.seed_addresses(), ["10.0.0.1:7000", "10.0.0.2:7002"].map(address));
        assert_eq!(config.num_tokens, 4);
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        check_refused("listen-address=0.0.0.0", "0.0.0.0 is no address that others could reach");
        check_refused("listen-address=127.0.0.1:7000", "not an address, as in");
        check_refused("broadcast-address=::", ":: is no address that others could reach");
        check_refused("seeds=10.0.0.1,", "not addresses with a port or without");
        check_refused("seeds=10.0.0.1:0", "not addresses with a port or without");
        check_refused("seeds=db1.example.com", "not addresses with a port or without");
        check_refused("seeds=[::]:7000", ":: is no address that others could reach");
        check_refused("storage-port=0", "not a port from 1 to 65535");
        check_refused("num-tokens=0", "not a whole number from 1 to 256");
        check_refused("num-tokens=257", "not a whole number from 1 to 256");
        check_refused("internode-compression=dc", "neither none nor all");
    }

    #[test]
    fn who_takes_a_place_needs_somebody_to_ask() {
        let ring = "listen-address=127.0.0.3 replace-address=127.0.0.3";
        let config = checked(&format!("{ring} seeds=127.0.0.3,127.0.0.1 storage-port=7001")).unwrap();
        assert_eq!(config.replaced_address(), Some(address("127.0.0.3:7001")));
        check_refused(&format!("{ring} seeds=127.0.0.3"), "`seeds` names no other node");
        check_refused("listen-address=::1 replace-address=node3", "not an address with a port or without");
        check_refused("replace-address=127.0.0.3", "of no use without `listen_address`");
        assert_eq!(checked("listen-address=::1 replace-address=").unwrap().replaced_address(), None);
    }

    #[test]
    fn tokens_are_as_many_as_there_are_to_be() {
        let ring = "listen-address=127.0.0.3 num-tokens=2 initial-token";
        let config = checked(&format!("{ring}=9,-7")).unwrap();
        assert_eq!(config.initial_tokens, [-7, 9]);
        check_refused(&format!("{ring}=5"), "`initial_token` = 5: 1 given, where `num_tokens` says 2");
        check_refused(&format!("{ring}=5,5"), "5 stands there twice");
        check_refused(&format!("{ring}=5,x"), "not whole numbers from -9223372036854775807 to");
        check_refused(&format!("{ring}=5,-9223372036854775808"), "not whole numbers from");
        check_refused("initial-token=5", "`initial_token` = 5: of no use without `listen_address`");
        check_refused(
            &format!("{ring}=5,6 replace-address=127.0.0.3 seeds=127.0.0.1"),
            "of no use with `replace_address`",
        );
        let mut config = Config::default();
        config.apply_file("f".as_ref(), "initial_token = [\"9\", \"-7\"]\nnum_tokens = 2").unwrap();
        assert_eq!(config.initial_tokens, [-7, 9]);
    }

    #[test]
    fn what_is_said_of_others_needs_an_address_for_them() {
        let alone = "of no use without `listen_address`, where other nodes reach this one";
        check_refused("seeds=10.0.0.1,10.0.0.2", &format!("`seeds` = 10.0.0.1:7000,10.0.0.2:7000: {alone}"));
        check_refused("broadcast-address=10.0.0.1", &format!("`broadcast_address` = 10.0.0.1: {alone}"));
        check_refused("internode-secret-file=/s", &format!("`internode_secret_file` = /s: {alone}"));
        check_refused("internode-encryption=all", &format!("`internode_encryption` = all: {alone}"));
    }

    #[test]
    fn an_address_that_strangers_reach_needs_a_secret() {
        check_refused(
            "listen-address=10.0.0.1",
            "`listen_address` = 10.0.0.1: not a loopback address, so that strangers could join: \
             give `internode_secret_file`, or certificates and `internode_encryption` all",
        );
        let config = checked("listen-address=10.0.0.1 internode-secret-file=/etc/secret").unwrap();
        assert_eq!(config.internode_secret_file, Some("/etc/secret".into()));
        let files = "internode-certificate-file=/c internode-key-file=/k internode-ca-file=/a";
        checked(&format!("listen-address=10.0.0.1 internode-encryption=all {files}")).unwrap();
        // In the clear anybody can say to be a node of this rack.
        check_refused(
            &format!("listen-address=10.0.0.1 internode-encryption=rack {files}"),
            "strangers could join",
        );
    }

    #[test]
    fn what_is_encrypted_needs_certificates_and_they_come_together() {
        let config = checked("listen-address=::1").unwrap();
        assert_eq!(
            (config.internode_encryption, config.internode_tls_files()),
            (InternodeEncryption::None, None)
        );
        let files = "internode-certificate-file=/c internode-key-file=/k internode-ca-file=/a";
        for (word, encryption) in [
            ("none", InternodeEncryption::None),
            ("rack", InternodeEncryption::Rack),
            ("dc", InternodeEncryption::Dc),
            ("all", InternodeEncryption::All),
        ] {
            let config = checked(&format!("listen-address=::1 internode-encryption={word} {files}")).unwrap();
            assert_eq!(config.internode_encryption, encryption);
            assert_eq!(config.internode_tls_files(), Some(["/c", "/k", "/a"].map(Path::new)));
        }
        let together =
            "give `internode_certificate_file`, `internode_key_file` and `internode_ca_file` together";
        check_refused(
            "listen-address=::1 internode-encryption=dc",
            &format!("`internode_encryption` = dc: {together}"),
        );
        check_refused(
            "listen-address=::1 internode-key-file=/k",
            &format!("`internode_key_file` = /k: {together}"),
        );
        check_refused("internode-ca-file=/a", "`internode_ca_file` = /a: of no use without `listen_address`");
        check_refused("internode-encryption=yes", "neither none, rack, dc nor all");
    }

    #[test]
    fn clients_of_a_ring_are_not_told_a_wildcard() {
        let wildcard = "listen-address=127.0.0.2 listen=0.0.0.0:9042";
        check_refused(
            wildcard,
            "`listen` = 0.0.0.0:9042: a wildcard address, which clients can not be told: give \
             `broadcast_rpc_address`, too",
        );
        check_refused("listen=[::]:9042 listen-address=::1", "`listen` = [::]:9042: a wildcard address");
        check_refused(
            &format!("{wildcard} broadcast-rpc-address=0.0.0.0"),
            "0.0.0.0 is no address that others could reach",
        );
        let config = checked(&format!("{wildcard} broadcast-rpc-address=10.0.0.9")).unwrap();
        assert_eq!(config.broadcast_rpc_address, Some("10.0.0.9".parse().unwrap()));
        checked("listen=0.0.0.0:9042").expect("a node that is alone tells nobody of others");
    }

    #[test]
    fn nodes_and_clients_need_sockets_of_their_own() {
        let same = "together with `listen_address` the same as";
        check_refused(
            "listen-address=127.0.0.1 storage-port=9042",
            &format!("`storage_port` = 9042: {same} `listen`"),
        );
        check_refused("listen-address=127.0.0.1 storage-port=7199", &format!("{same} `management`"));
        check_refused(
            "listen-address=127.0.0.2 storage-port=9042 listen=0.0.0.0:9042",
            &format!("{same} `listen`"),
        );
        checked("listen-address=127.0.0.2 storage-port=9042").unwrap();
    }
}
