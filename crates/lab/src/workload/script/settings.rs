//! Settings: what whoever measures may change in a script.
//!
//! A script declares them with what they are if nobody changes them, and names them in braces wherever a number or a
//! word stands:
//!
//! ```text
//!   [settings]                      bytes = "{bytes}"         -> bytes = 100
//!   bytes = 100                     partition = "{choice}"    -> partition = "uniform"
//!   choice = "uniform"              "... LIMIT {bytes}"       -> "... LIMIT 100"
//! ```
//!
//! They are put in before the text is read, so that they can be everywhere, and an error still names its line.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::text::in_line;

/// Places that are filled later.
const RESERVED: &[&str] = &["keyspace", "partition", "row", "hash", "times"];

/// The text with its settings put in, some of them changed.
///
/// # Errors
/// It is no TOML, or has a setting that can not be, or a change is of none or to a wrong value.
pub(super) fn put(text: &str, changes: &BTreeMap<String, String>) -> Result<String, String> {
    let table: Table = text.parse().map_err(|error| in_line(text, &error))?;
    let declared = match table.get("settings") {
        None => Table::new(),
        Some(Value::Table(declared)) => declared.clone(),
        Some(_) => return Err("[settings] is a table".to_owned()),
    };
    if let Some(name) = changes.keys().find(|name| !declared.contains_key(*name)) {
        let names: Vec<&str> = declared.keys().map(String::as_str).collect();
        let names =
            if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        return Err(format!("there is no setting '{name}': {names}"));
    }
    let mut put = text.to_owned();
    for (name, value) in &declared {
        let place = format!("{{{name}}}");
        if RESERVED.contains(&name.as_str()) {
            return Err(format!("a setting can not be called '{name}'"));
        }
        if !text.contains(&place) {
            return Err(format!("the setting '{name}' is used nowhere, as {place}"));
        }
        let value = changed(name, value, changes.get(name))?;
        let alone = if let Value::String(word) = &value { format!("\"{word}\"") } else { value.to_string() };
        put = put.replace(&format!("\"{place}\""), &alone).replace(&place, alone.trim_matches('"'));
    }
    Ok(put)
}

/// A setting's value: as it is declared, or another of the same type.
fn changed(name: &str, declared: &Value, change: Option<&String>) -> Result<Value, String> {
    let text = change.cloned().unwrap_or_else(|| match declared {
        Value::String(word) => word.clone(),
        other => other.to_string(),
    });
    let value = match declared {
        Value::Integer(_) => text.parse().ok().map(Value::Integer),
        Value::Float(_) => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float),
        Value::String(_) => {
            // Nothing that would end a quoted text.
            let is_plain = |one: char| one.is_ascii_alphanumeric() || "-_.()".contains(one);
            (!text.is_empty() && text.chars().all(is_plain)).then_some(Value::String(text.clone()))
        }
        _ => return Err(format!("the setting '{name}' is neither a number nor a word")),
    };
    value.ok_or_else(|| format!("{name} can not be '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[settings]\nbytes = 100\npart = 0.5\nchoice = 'uniform'\n\n[it]\nbytes = \"{bytes}\"\n\
                        of = [\"{choice}\", \"{part}\"]\nstatement = \"LIMIT {bytes} {keyspace}\"\n";

    fn with(changes: &[(&str, &str)]) -> Result<String, String> {
        let changes = changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        put(TEXT, &changes.collect())
    }

    #[test]
    fn settings_stand_where_they_are_named() {
        let text = with(&[]).unwrap();
        assert!(text.contains("bytes = 100\nof = [\"uniform\", 0.5]"), "{text}");
        assert!(text.contains("LIMIT 100 {keyspace}"), "{text}");
        let text = with(&[("bytes", "7"), ("choice", "normal(0.2)"), ("part", "1")]).unwrap();
        assert!(text.contains("bytes = 7\nof = [\"normal(0.2)\", 1.0]"), "{text}");
    }

    #[test]
    fn what_can_not_be_set_is_refused() {
        let refused = |name: &str, value: &str| with(&[(name, value)]).unwrap_err();
        assert!(refused("colour", "red").contains("no setting 'colour': it has bytes, choice, part"));
        assert!(refused("bytes", "many").contains("bytes can not be 'many'"));
        assert!(refused("part", "NaN").contains("part can not be 'NaN'"));
        assert!(refused("choice", "a\" b").contains("can not be"));
        assert!(
            put("[settings]\nrow = 1\n", &BTreeMap::new()).unwrap_err().contains("can not be called 'row'")
        );
        assert!(put("[settings]\nx = 1\n", &BTreeMap::new()).unwrap_err().contains("used nowhere"));
        assert!(put("a = \n", &BTreeMap::new()).unwrap_err().starts_with("line 1: "));
    }
}
