//! The parser of CQL. No text may make it panic, and what it accepts must print as CQL that is the
//! same statement.
//!
//! ```text
//!   byte 0   bit 0: a statement or a type
//!   the rest the text; bytes that are no UTF-8 end it
//! ```
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [choice, text @ ..] = data else { return };
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    };
    if choice & 1 == 1 {
        if let Ok(parsed) = cql::parse_type(text) {
            assert_eq!(cql::parse_type(&parsed.to_string()), Ok(parsed));
        }
        return;
    }
    if let Ok(parsed) = cql::parse_statement(text) {
        let printed = parsed.to_string();
        assert_eq!(cql::parse_statement(&printed), Ok(parsed), "printed {printed}");
    }
});
