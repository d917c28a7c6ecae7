//! Texts with places: `sensor-{partition:8}` is `sensor-00000017` for partition 17.
//!
//! | place | what stands there |
//! |---|---|
//! | `{partition}`, `{row}` | the number; with a width, as `{row:6}`, zeros before it |
//! | `{hash}` | hexadecimal digits that follow from the partition: 16, or as many as in `{hash:10}` |

use std::io::Write;

use serde::Deserialize;

use crate::generator::fnv64;

/// No place is wider.
const WIDTH_MAX: usize = 64;
/// Hexadecimal digits of a hash.
const HASH_WIDTH_MAX: usize = 16;

/// A text with places.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Partition { width: usize },
    Row { width: usize },
    Hash { width: usize },
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Template, String> {
        let (mut parts, mut rest) = (Vec::new(), text.as_str());
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((place, behind)) = behind.split_once('}') else {
                return Err(format!("a place in '{text}' is not closed"));
            };
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::of(place)?);
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        parts.retain(|part| *part != Part::Text(String::new()));
        Ok(Template { parts })
    }
}

impl Part {
    fn of(place: &str) -> Result<Part, String> {
        let (name, width) = place.split_once(':').unwrap_or((place, ""));
        let wrong =
            || format!("'{{{place}}}' is no place of a text: there are {{partition}}, {{row}}, {{hash}}");
        let width_max = if name == "hash" { HASH_WIDTH_MAX } else { WIDTH_MAX };
        let width = match width {
            "" => 0,
            digits => digits.parse::<usize>().map_err(|_| wrong())?,
        };
        if width > width_max {
            return Err(format!("'{{{place}}}' is wider than {width_max}"));
        }
        match name {
            "partition" => Ok(Part::Partition { width }),
            "row" => Ok(Part::Row { width }),
            "hash" => Ok(Part::Hash { width: if width == 0 { HASH_WIDTH_MAX } else { width } }),
            _ => Err(wrong()),
        }
    }
}

impl Template {
    /// Writes it for a row.
    pub(super) fn write(&self, partition: u64, row: u64, out: &mut Vec<u8>) {
        for part in &self.parts {
            let written = match part {
                Part::Text(text) => {
                    out.extend_from_slice(text.as_bytes());
                    Ok(())
                }
                Part::Partition { width } => write!(out, "{partition:0width$}"),
                Part::Row { width } => write!(out, "{row:0width$}"),
                Part::Hash { width } => {
                    // The lower bits of the hash differ most from one number to the next.
                    let mask = u64::MAX >> (64 - 4 * width);
                    write!(out, "{:0width$x}", fnv64(partition) & mask)
                }
            };
            written.expect("memory takes what is written");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(template: &str, partition: u64, row: u64) -> String {
        let mut out = Vec::new();
        Template::try_from(template.to_owned()).unwrap().write(partition, row, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn places_are_filled() {
        assert_eq!(written("plain", 1, 2), "plain");
        assert_eq!(written("001.{partition}.{row:4}", 17, 5), "001.17.0005");
        assert_eq!(written("{hash:10}", 17, 5).len(), 10);
        assert_ne!(written("{hash:10}", 17, 5), written("{hash:10}", 18, 5));
        assert_eq!(written("{hash}", 1, 0), format!("{:016x}", fnv64(1)));
    }

    #[test]
    fn unknown_places_are_refused() {
        let refused = |text: &str| Template::try_from(text.to_owned()).unwrap_err();
        assert!(refused("{colour}").contains("'{colour}' is no place"));
        assert!(refused("{partition").contains("not closed"));
        assert!(refused("{partition:x}").contains("no place"));
        assert!(refused("{hash:17}").contains("wider than 16"));
    }
}
