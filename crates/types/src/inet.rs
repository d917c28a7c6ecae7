//! `inet`: an address of 4 or 16 bytes.

use crate::TypeError;
use std::net::{IpAddr, Ipv6Addr};

/// Decodes; an IPv6 address that stands for an IPv4 one is that one, as Java has it. Neither an
/// empty value nor one of another length is an address.
pub fn decode(value: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(value) {
        return Some(IpAddr::from(bytes));
    }
    let address = Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?);
    Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
}

/// Encodes, an IPv6 address that stands for an IPv4 one as that one.
pub fn encode(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Reads a numeric address. IPv4 may have fewer than four parts, the last then filling the rest
/// (`127.1`); IPv6 may stand in brackets or have a zone behind `%`. Names, which Cassandra asks
/// its resolver for, are refused, but for `localhost`.
///
/// # Errors
/// The text is anything else.
pub fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    let refused = || TypeError::text(stdx::brief!("Unable to make inet address from '{text}'"));
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(vec![127, 0, 0, 1]);
    }
    if !text.contains(':') {
        return parse_ipv4(text).map(|address| address.to_vec()).ok_or_else(refused);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let numeric = bare.split_once('%').map_or(bare, |(address, _)| address);
    numeric.parse::<Ipv6Addr>().map(|address| encode(IpAddr::V6(address))).map_err(|_| refused())
}

/// One to four decimal parts.
fn parse_ipv4(text: &str) -> Option<[u8; 4]> {
    let parts = text
        .split('.')
        .map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse::<u32>().ok()).flatten()
        })
        .collect::<Option<Vec<u32>>>()?;
    let (last, leading) = parts.split_last()?;
    if leading.len() > 3 || leading.iter().any(|part| *part > 255) {
        return None;
    }
    let last_bits = 32 - 8 * leading.len() as u32;
    if last_bits < 32 && *last >> last_bits != 0 {
        return None;
    }
    let address = leading.iter().enumerate().fold(*last, |sum, (i, part)| sum | part << (24 - 8 * i));
    Some(address.to_be_bytes())
}

/// As Java shows addresses: IPv6 without `::`. The empty value is the empty text.
pub fn format(value: &[u8]) -> String {
    match decode(value) {
        None => String::new(),
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => {
            let segments: Vec<String> =
                address.segments().iter().map(|segment| format!("{segment:x}")).collect();
            segments.join(":")
        }
    }
}
