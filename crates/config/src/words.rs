//! What the words of single options mean.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::quantity::{parse_time, show_size};

/// More shards than any machine has cores.
const SHARDS_MAX: u16 = 1024;

pub(crate) fn parse_switch(text: &str) -> Result<bool, String> {
    text.trim().parse().map_err(|_| "neither true nor false".to_owned())
}

pub(crate) fn not_empty(text: &str) -> Result<&str, String> {
    match text.trim().is_empty() {
        true => Err("must not be empty".to_owned()),
        false => Ok(text),
    }
}

pub(crate) fn at_least(bytes: u64, minimum: u64) -> Result<u64, String> {
    match bytes < minimum {
        true => Err(format!("must be at least {}", show_size(minimum))),
        false => Ok(bytes),
    }
}

pub(crate) fn at_most(bytes: u64, maximum: u64) -> Result<u64, String> {
    match bytes > maximum {
        true => Err(format!("must be at most {}", show_size(maximum))),
        false => Ok(bytes),
    }
}

/// A time that is not nothing.
pub(crate) fn parse_limit(text: &str) -> Result<Duration, String> {
    parse_time(text).and_then(|time| match time.is_zero() {
        true => Err("must be longer than nothing".to_owned()),
        false => Ok(time),
    })
}

pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let number = text.trim().parse::<u32>().map(u64::from);
    number.map_err(|_| format!("not a whole number from 0 to {}", u32::MAX))
}

/// An address of this machine; `localhost` is looked up nowhere.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let problem = "not an address and a port, as in 127.0.0.1:9042 or [::1]:9042";
    let text = text.trim();
    match text.strip_prefix("localhost:") {
        Some(port) => match port.parse::<u16>() {
            Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
            Err(_) => Err(problem.to_owned()),
        },
        None => text.parse().map_err(|_| problem.to_owned()),
    }
}

pub(crate) fn parse_shards(text: &str) -> Result<Option<u16>, String> {
    match text.trim() {
        "auto" => Ok(None),
        number => match number.parse::<u16>() {
            Ok(number @ 1..=SHARDS_MAX) => Ok(Some(number)),
            _ => Err(format!("neither auto nor a whole number from 1 to {SHARDS_MAX}")),
        },
    }
}

pub(crate) fn parse_path(text: &str) -> Option<PathBuf> {
    Some(text.trim()).filter(|path| !path.is_empty()).map(PathBuf::from)
}

pub(crate) fn parse_paths(text: &str) -> Result<Vec<PathBuf>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let path = |path: &str| match path.trim() {
        "" => Err("a path is empty".to_owned()),
        path => Ok(PathBuf::from(path)),
    };
    text.split(',').map(path).collect()
}

pub(crate) fn parse_connections(text: &str) -> Result<Option<u32>, String> {
    match text.trim() {
        "auto" => Ok(None),
        text => match text.parse::<u32>() {
            Ok(count) if count > 0 => Ok(Some(count)),
            _ => Err("neither auto nor a whole number from 1 on".to_owned()),
        },
    }
}
