//! `caching = {'keys': …, 'rows_per_partition': …, 'prefetch': …}`; the last is ours.

use schema::{Caching, Prefetch};

use crate::QueryError;

/// The map as it was written, checked.
pub(super) fn read(map: &[(&str, &str)]) -> Result<Caching, QueryError> {
    let value = |name: &str| map.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let keys = value("keys").map_or(Ok("NONE"), read_keys)?.to_owned();
    let rows_per_partition = value("rows_per_partition").map_or(Ok("NONE".to_owned()), read_rows)?;
    let prefetch = value("prefetch").map_or(Ok(Prefetch::None), read_prefetch)?;
    let unknown: Vec<_> = map
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| !matches!(*key, "keys" | "rows_per_partition" | "prefetch"))
        .collect();
    if !unknown.is_empty() {
        return Err(QueryError::config(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        )));
    }
    Ok(Caching { keys, rows_per_partition, prefetch })
}

fn read_keys(value: &str) -> Result<&'static str, QueryError> {
    match value.to_ascii_uppercase().as_str() {
        "ALL" => Ok("ALL"),
        "NONE" => Ok("NONE"),
        _ => Err(QueryError::config(format!(
            "Invalid value '{value}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed"
        ))),
    }
}

fn read_rows(value: &str) -> Result<String, QueryError> {
    let upper = value.to_ascii_uppercase();
    if upper == "ALL" || upper == "NONE" {
        return Ok(upper);
    }
    let is_digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse::<i32>() {
        Ok(0) if is_digits => Ok("NONE".to_owned()),
        Ok(i32::MAX) => Ok("ALL".to_owned()),
        Ok(count) if is_digits => Ok(count.to_string()),
        _ => Err(QueryError::config(format!(
            "Invalid value '{value}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and integer \
             values are allowed"
        ))),
    }
}

fn read_prefetch(value: &str) -> Result<Prefetch, QueryError> {
    let found = Prefetch::ALL.into_iter().find(|prefetch| prefetch.text().eq_ignore_ascii_case(value));
    found.ok_or_else(|| {
        QueryError::config(format!(
            "Invalid value '{value}' for caching sub-option 'prefetch': only 'ALL', 'HOT' and 'NONE' are allowed"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_is_not_cached() {
        let prefetch = Prefetch::None;
        let none = Caching { keys: "NONE".into(), rows_per_partition: "NONE".into(), prefetch };
        assert_eq!(read(&[]), Ok(none.clone()));
        assert_eq!(read(&[("keys", "none"), ("rows_per_partition", "0")]), Ok(none));
        let some = Caching { keys: "ALL".into(), rows_per_partition: "10".into(), prefetch };
        assert_eq!(read(&[("rows_per_partition", "010"), ("keys", "All")]), Ok(some));
        assert!(read(&[("rows_per_partition", "-1")]).is_err());
    }

    #[test]
    fn what_comes_into_memory_after_a_start_is_described_if_anything_does() {
        let entries = |value: &str| {
            let caching = read(&[("keys", "ALL"), ("prefetch", value)]).expect("understood");
            caching.entries().into_values().collect::<Vec<_>>()
        };
        assert_eq!(entries("hot"), ["ALL", "HOT", "NONE"]);
        assert_eq!(entries("All"), ["ALL", "ALL", "NONE"]);
        assert_eq!(entries("none"), ["ALL", "NONE"]);
        assert!(read(&[("prefetch", "some")]).is_err());
    }
}
