//! Options of `COPY`.

use crate::csv::Dialect;
use crate::values::ParseOptions;

/// Options with cqlsh's names and defaults.
#[derive(Clone, Debug)]
pub(super) struct CopyOptions {
    pub(super) dialect: Dialect,
    pub(super) null: String,
    pub(super) header: bool,
    pub(super) values: ParseOptions,
    pub(super) page_size: i32,
    pub(super) begin_token: Option<i64>,
    pub(super) end_token: Option<i64>,
    pub(super) skip_rows: u64,
    pub(super) rows_max: Option<u64>,
    /// Names of columns that are in the file and left out of the table.
    pub(super) skip_columns: Vec<String>,
    pub(super) ttl: Option<i64>,
    pub(super) parse_errors_max: Option<u64>,
    pub(super) insert_errors_max: Option<u64>,
    pub(super) error_file: Option<String>,
    pub(super) in_flight_max: usize,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions {
            dialect: Dialect::default(),
            null: String::new(),
            header: false,
            values: ParseOptions::default(),
            page_size: 1000,
            begin_token: None,
            end_token: None,
            skip_rows: 0,
            rows_max: None,
            skip_columns: Vec::new(),
            ttl: None,
            parse_errors_max: None,
            insert_errors_max: Some(1000),
            error_file: None,
            in_flight_max: 512,
        }
    }
}

impl PartialEq for CopyOptions {
    fn eq(&self, other: &CopyOptions) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

/// Options of cqlsh that say how its processes share the work; they mean nothing here.
const WITHOUT_EFFECT: &[&str] = &[
    "childtimeout",
    "chunksize",
    "ingestrate",
    "maxattempts",
    "maxbackoffattempts",
    "maxbatchsize",
    "maxpendingchunks",
    "minbatchsize",
    "numprocesses",
    "pagetimeout",
    "preparedstatements",
    "ratefile",
    "reportfrequency",
    "requesttimeout",
];

/// Options of cqlsh that are not built.
const NOT_BUILT: &[&str] = &[
    "configfile",
    "datetimeformat",
    "decimalsep",
    "doubleprecision",
    "floatprecision",
    "maxoutputsize",
    "thousandssep",
];

impl CopyOptions {
    /// Sets an option by the name the user typed.
    ///
    /// # Errors
    /// There is no such option, or it does not take the value.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let refused = || format!("Improper COPY option: {} does not take '{value}'.", name.to_uppercase());
        let count = || value.parse::<i64>().map_err(|_| refused());
        // In cqlsh -1 stands for no limit.
        let limit = || count().map(|count| u64::try_from(count).ok());
        match name.to_lowercase().as_str() {
            "delimiter" => self.dialect.delimiter = byte(value).ok_or_else(refused)?,
            "quote" => self.dialect.quote = byte(value).ok_or_else(refused)?,
            "escape" => self.dialect.escape = byte(value).ok_or_else(refused)?,
            "null" | "nullval" => self.null = value.to_owned(),
            "header" => self.header = value.eq_ignore_ascii_case("true"),
            "encoding" if ["utf8", "utf-8"].contains(&value.to_lowercase().as_str()) => {}
            "boolstyle" => {
                let (yes, no) = value.split_once(',').ok_or_else(refused)?;
                let (yes, no) = (yes.trim(), no.trim());
                if yes.is_empty() || no.is_empty() || yes == no {
                    return Err(refused());
                }
                self.values.booleans = (yes.to_owned(), no.to_owned());
            }
            "pagesize" => self.page_size = value.parse().ok().filter(|size| *size > 0).ok_or_else(refused)?,
            "begintoken" => self.begin_token = Some(count()?),
            "endtoken" => self.end_token = Some(count()?),
            "skiprows" => self.skip_rows = value.parse().map_err(|_| refused())?,
            "maxrows" => self.rows_max = limit()?,
            "skipcols" => self.skip_columns = value.split(',').map(|name| name.trim().to_owned()).collect(),
            "ttl" => self.ttl = limit()?.and_then(|ttl| i64::try_from(ttl).ok()),
            "maxparseerrors" => self.parse_errors_max = limit()?,
            "maxinserterrors" => self.insert_errors_max = limit()?,
            "errfile" => self.error_file = Some(value.to_owned()),
            "maxrequests" | "maxinflightmessages" => {
                self.in_flight_max =
                    value.parse().ok().filter(|count| (1..=4096).contains(count)).ok_or_else(refused)?;
            }
            name if WITHOUT_EFFECT.contains(&name) => {}
            "encoding" => {
                return Err(
                    "Improper COPY option: ENCODING is UTF-8, another one is not built yet.".to_owned()
                );
            }
            name if NOT_BUILT.contains(&name) => {
                return Err(format!("Improper COPY option: {} is not built yet.", name.to_uppercase()));
            }
            _ => return Err(format!("Improper COPY option: there is no option {}.", name.to_uppercase())),
        }
        Ok(())
    }
}

/// A character of one byte; `\t` stands for a tab.
fn byte(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [byte] => Some(*byte),
        br"\t" => Some(b'\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_by_cqlsh_names() {
        let mut options = CopyOptions::default();
        options.set("MAXROWS", "-1").unwrap();
        options.set("DELIMITER", "\\t").unwrap();
        options.set("NUMPROCESSES", "4").unwrap();
        options.set("BOOLSTYLE", "yes, no").unwrap();
        assert_eq!(options.rows_max, None);
        assert_eq!(options.dialect.delimiter, b'\t');
        assert_eq!(options.values.booleans, ("yes".to_owned(), "no".to_owned()));
        assert!(options.set("PAGESIZE", "0").is_err());
        let refused = |name: &str, value: &str| CopyOptions::default().set(name, value).unwrap_err();
        assert_eq!(refused("DATETIMEFORMAT", "%Y"), "Improper COPY option: DATETIMEFORMAT is not built yet.");
        assert_eq!(refused("nonsense", "1"), "Improper COPY option: there is no option NONSENSE.");
        assert!(refused("ENCODING", "latin1").contains("not built yet"));
    }
}
