//! `caching = {'keys': …, 'rows_per_partition': …}`.

use schema::Caching;

use crate::QueryError;

/// The map as it was written, checked.
pub(super) fn read(map: &[(&str, &str)]) -> Result<Caching, QueryError> {
    let value = |name: &str| map.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let keys = value("keys").map_or(Ok("NONE"), read_keys)?.to_owned();
    let rows_per_partition = value("rows_per_partition").map_or(Ok("NONE".to_owned()), read_rows)?;
    let unknown: Vec<_> = map
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| !matches!(*key, "keys" | "rows_per_partition"))
        .collect();
    if !unknown.is_empty() {
        return Err(QueryError::config(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        )));
    }
    Ok(Caching { keys, rows_per_partition })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_is_not_cached() {
        let none = Caching { keys: "NONE".into(), rows_per_partition: "NONE".into() };
        assert_eq!(read(&[]), Ok(none.clone()));
        assert_eq!(read(&[("keys", "none"), ("rows_per_partition", "0")]), Ok(none));
        let some = Caching { keys: "ALL".into(), rows_per_partition: "10".into() };
        assert_eq!(read(&[("rows_per_partition", "010"), ("keys", "All")]), Ok(some));
        assert!(read(&[("rows_per_partition", "-1")]).is_err());
    }
}
