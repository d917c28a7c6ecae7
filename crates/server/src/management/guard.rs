//! Who may ask: whoever knows the token, or without one every program of this machine, but no page in a browser.
//!
//! A page that somebody looks at on this machine could reach a port of loopback, too. Browsers say where such a
//! request comes from (`Origin`), except that the owner of the page's name may have the name lead to `127.0.0.1` after
//! the page was loaded (DNS rebinding): to the browser the port is then the page's own site. But it still asks for that
//! name (`Host`), which is not one of this machine. Where there is a token names need not be looked at: no page knows
//! it, and a machine that others reach has names that it does not know itself.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Request};

use super::answer::Refusal;
use super::token::ManagementToken;
use crate::ServerError;

/// Looks at requests before they are read to their end.
#[derive(Debug)]
pub(crate) struct Guard {
    token: Option<ManagementToken>,
}

impl Guard {
    /// The guard of a port at that address.
    ///
    /// # Errors
    /// [`ServerError::ManagementOpen`] when other machines reach the address, and there is no token.
    pub(crate) fn new(address: SocketAddr, token: Option<ManagementToken>) -> Result<Guard, ServerError> {
        if token.is_none() && !is_loopback(address.ip()) {
            return Err(ServerError::ManagementOpen { address });
        }
        Ok(Guard { token })
    }

    /// # Errors
    /// The request is not for whoever asks, or names another machine.
    pub(super) fn check<T>(&self, request: &Request<T>) -> Result<(), Refusal> {
        let headers = request.headers();
        if headers.contains_key(ORIGIN) {
            return Err(Refusal::forbidden("not for web pages"));
        }
        match &self.token {
            Some(token) => check_token(token, headers),
            None => check_names(request),
        }
    }
}

fn check_token(token: &ManagementToken, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(only), None) = (given.next(), given.next()) else {
        return Err(Refusal::unauthorized(
            "a token is needed (`Authorization: Bearer …`, `nodetool --token-file`)",
        ));
    };
    let word = only.as_bytes().split_at_checked(b"bearer ".len());
    match word {
        Some((scheme, word)) if scheme.eq_ignore_ascii_case(b"bearer ") && token.is(word.trim_ascii()) => {
            Ok(())
        }
        _ => Err(Refusal::unauthorized("the token is not that of this node")),
    }
}

/// Every name that the request calls us by must be one of this machine.
fn check_names<T>(request: &Request<T>) -> Result<(), Refusal> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err(Refusal::wrong("a request says once which `Host` it is for"));
    };
    let is_ours = host.to_str().is_ok_and(names_this_machine);
    let is_ours_in_target = request.uri().authority().is_none_or(|name| names_this_machine(name.as_str()));
    match is_ours && is_ours_in_target {
        true => Ok(()),
        false => {
            Err(Refusal::forbidden("without a token only `localhost` and addresses of loopback are served"))
        }
    }
}

/// Is this `localhost` or an address of loopback, with a port or without?
fn names_this_machine(authority: &str) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else { return false };
    if authority.as_str().contains('@') {
        return false;
    }
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(is_loopback)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use axum::http::StatusCode;

    use super::*;

    const HOME: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7199);

    fn check(guard: &Guard, target: &str, headers: &[(&str, &str)]) -> Option<StatusCode> {
        let request = Request::builder().uri(target);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        guard.check(&request.body(()).expect("a request")).err().map(|refusal| refusal.status())
    }

    #[test]
    fn without_a_token_only_names_of_this_machine_are_served() {
        let guard = Guard::new(HOME, None).expect("loopback");
        let host = |name: &str| check(&guard, "/v1/info", &[("host", name)]);
        for name in ["localhost", "LOCALHOST:7199", "127.0.0.1:7199", "127.8.8.8", "[::1]:7199", "[::1]"] {
            assert_eq!(host(name), None, "{name}");
        }
        for name in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:7199",
            "evil.example@localhost",
            "192.168.1.5",
            "0.0.0.0",
            "[::]",
            "",
            "localhost evil.example",
        ] {
            assert_eq!(host(name), Some(StatusCode::FORBIDDEN), "{name}");
        }
        assert_eq!(check(&guard, "/v1/info", &[]), Some(StatusCode::BAD_REQUEST));
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(check(&guard, "/v1/info", &two), Some(StatusCode::BAD_REQUEST));
        let in_target = check(&guard, "http://evil.example/v1/info", &[("host", "localhost")]);
        assert_eq!(in_target, Some(StatusCode::FORBIDDEN));
        let page = [("host", "localhost"), ("origin", "http://evil.example")];
        assert_eq!(check(&guard, "/v1/info", &page), Some(StatusCode::FORBIDDEN));
    }

    #[test]
    fn with_a_token_every_request_must_bring_it() {
        let file = tempfile::NamedTempFile::new().expect("a file, for its owner alone");
        #[expect(clippy::disallowed_methods, reason = "a file of the test's")]
        std::fs::write(file.path(), "secret\n").expect("written");
        let token = ManagementToken::read(file.path()).expect("a token");
        let guard = Guard::new("0.0.0.0:7199".parse().expect("an address"), Some(token)).expect("a token");
        let check = |headers: &[(&str, &str)]| check(&guard, "/v1/info", headers);
        for word in ["Bearer secret", "bearer secret", "Bearer  secret"] {
            assert_eq!(check(&[("authorization", word), ("host", "db1.example.com")]), None, "{word}");
        }
        for word in ["", "Bearer", "Bearer ", "Bearer secre", "Basic secret", "secret", "Bearer secret x"] {
            assert_eq!(check(&[("authorization", word)]), Some(StatusCode::UNAUTHORIZED), "{word}");
        }
        assert_eq!(check(&[("host", "localhost")]), Some(StatusCode::UNAUTHORIZED));
        let two = [("authorization", "Bearer secret"), ("authorization", "Bearer other")];
        assert_eq!(check(&two), Some(StatusCode::UNAUTHORIZED));
        let page = [("authorization", "Bearer secret"), ("origin", "http://evil.example")];
        assert_eq!(check(&page), Some(StatusCode::FORBIDDEN));
    }

    #[test]
    fn a_port_for_other_machines_needs_a_token() {
        for address in ["127.0.0.1:7199", "127.1.2.3:7199", "[::1]:7199", "[::ffff:127.0.0.1]:7199"] {
            assert!(Guard::new(address.parse().expect("an address"), None).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:7199", "[::]:7199", "192.168.1.5:7199", "[fe80::1]:7199"] {
            let refused = Guard::new(address.parse().expect("an address"), None).expect_err("open");
            let words = refused.to_string();
            assert!(words.starts_with(address) && words.contains("`management_token_file`"), "{words}");
        }
        assert!(ManagementToken::read(Path::new("/")).is_err(), "a directory is no token");
    }
}
