//! `nodetool gettimeout` and `settimeout`.

use std::io::Write;

use management::Timeouts;
use serde_json::json;

use super::NodetoolError;
use super::http::Management;

/// Timeouts that Cassandra has, of things that are not done here.
const ABSENT: [&str; 4] = ["internodeconnect", "internodeuser", "internodestreaminguser", "misc"];

/// Prints one of them in Cassandra's words.
pub(super) fn get(management: &Management, kind: &str, out: &mut impl Write) -> Result<(), NodetoolError> {
    let timeouts: Timeouts = management.get("/v1/timeouts", &[])?;
    let Some(milliseconds) = timeouts.milliseconds.get(kind) else {
        let known: Vec<&str> = timeouts.milliseconds.keys().map(String::as_str).collect();
        return Err(unknown(kind, &known.join(", ")));
    };
    Ok(writeln!(out, "Current timeout for type {kind}: {milliseconds} ms")?)
}

/// Sets one, until the node ends.
pub(super) fn set(management: &Management, kind: &str, milliseconds: u64) -> Result<(), NodetoolError> {
    if ABSENT.contains(&kind) {
        return Err(unknown(kind, "see gettimeout"));
    }
    management.post("/v1/timeouts", &json!({ "kind": kind, "milliseconds": milliseconds }))
}

fn unknown(kind: &str, known: &str) -> NodetoolError {
    NodetoolError::BadUse(match ABSENT.contains(&kind) {
        true => format!("nothing is done here that the timeout '{kind}' is for ({known})"),
        false => format!("there is no timeout '{kind}' ({known})"),
    })
}
