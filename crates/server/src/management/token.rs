//! The word that whoever asks the management port must know, where there is one.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::ServerError;

/// Bytes of a token, at most: it is a line of a request's head.
const TOKEN_BYTES_MAX: usize = 1024;

/// What somebody may do with a file who is neither its owner nor of its group.
const OTHERS: u32 = 0o007;

/// A word that gives access to the management port. Its `Debug` form does not tell it.
#[derive(Clone, PartialEq, Eq)]
pub struct ManagementToken(Box<str>);

impl ManagementToken {
    /// Reads a token from a file of one line.
    ///
    /// # Errors
    /// [`ServerError::TokenFile`] when it can not be read, [`ServerError::Token`] when others may read or change it, or
    /// when it holds no token.
    pub fn read(path: &Path) -> Result<ManagementToken, ServerError> {
        ManagementToken::read_as("token file", path)
    }

    /// As [`ManagementToken::read`], of a file that is called so where it can not be read.
    ///
    /// # Errors
    /// As there.
    #[expect(clippy::disallowed_methods, reason = "a file of the administrator's, not one of the node's")]
    pub(crate) fn read_as(what: &'static str, path: &Path) -> Result<ManagementToken, ServerError> {
        let fail = |source| ServerError::TokenFile { what, path: path.to_owned(), source };
        let wrong = |problem| ServerError::Token { what, path: path.to_owned(), problem };
        let file = File::open(path).map_err(fail)?;
        if file.metadata().map_err(fail)?.permissions().mode() & OTHERS != 0 {
            return Err(wrong("others than its owner and its group may read or change it"));
        }
        let mut text = String::new();
        // A token, its line's end, and one byte more than there may be.
        file.take(TOKEN_BYTES_MAX as u64 + 3).read_to_string(&mut text).map_err(fail)?;
        ManagementToken::parse(&text).map_err(wrong)
    }

    fn parse(text: &str) -> Result<ManagementToken, &'static str> {
        let token = text.strip_suffix('\n').unwrap_or(text);
        let token = token.strip_suffix('\r').unwrap_or(token);
        if token.is_empty() {
            return Err("it is empty");
        }
        if token.len() > TOKEN_BYTES_MAX {
            return Err("its token is longer than 1024 bytes");
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it is not one line of visible ASCII characters without spaces");
        }
        Ok(ManagementToken(token.into()))
    }

    /// The token itself, for whoever presents it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is this the token? How long that takes tells nobody how many of its bytes are right.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let differing = self.0.bytes().zip(given).fold(0, |differing, (a, b)| black_box(differing | (a ^ b)));
        self.0.len() == given.len() && differing == 0
    }
}

impl fmt::Debug for ManagementToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ManagementToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::io::Write;

    use super::*;

    /// What comes of a file of that text, which these may read and write.
    fn read(text: &[u8], mode: u32) -> Result<String, String> {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("written");
        file.as_file().set_permissions(Permissions::from_mode(mode)).expect("set");
        let read = ManagementToken::read(file.path());
        read.map(|token| token.as_str().to_owned())
            .map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
    }

    #[test]
    fn a_token_is_one_line_of_a_file_that_others_can_not_read() {
        let longest = "x".repeat(TOKEN_BYTES_MAX);
        for (text, token) in [("secret", "secret"), ("secret\n", "secret"), ("a/b+c==\r\n", "a/b+c==")] {
            assert_eq!(read(text.as_bytes(), 0o600).as_deref(), Ok(token));
        }
        assert_eq!(read(format!("{longest}\r\n").as_bytes(), 0o440), Ok(longest.clone()));
        for mode in [0o604, 0o644, 0o602] {
            let problem = "token file FILE: others than its owner and its group may read or change it";
            assert_eq!(read(b"secret", mode).expect_err("open to others"), problem);
        }
        for (text, problem) in [
            ("", "it is empty"),
            ("\n", "it is empty"),
            ("two words\n", "it is not one line"),
            ("two\nlines\n", "it is not one line"),
            ("größe", "it is not one line"),
            (&format!("{longest}x"), "its token is longer"),
        ] {
            let refused = read(text.as_bytes(), 0o600).expect_err("no token");
            assert!(refused.starts_with(&format!("token file FILE: {problem}")), "{text:?}: {refused}");
        }
        assert_eq!(read(&[0xff, 0xfe], 0o600).expect_err("no text"), "read token file FILE");
        let missing = ManagementToken::read(Path::new("/nonexistent/token")).expect_err("no file");
        assert_eq!(missing.to_string(), "read token file /nonexistent/token");
        let secret = ManagementToken::read_as("secret file", Path::new("/nonexistent/secret"));
        assert_eq!(secret.expect_err("no file").to_string(), "read secret file /nonexistent/secret");
    }

    #[test]
    fn only_the_token_itself_is_taken_and_it_is_not_printed() {
        let token = ManagementToken::parse("secret").expect("a token");
        assert!(token.is(b"secret"));
        for other in ["", "s", "secre", "secreT", "secret ", "secretsecret", "xxxxxx"] {
            assert!(!token.is(other.as_bytes()), "{other:?}");
        }
        assert_eq!(format!("{token:?}"), "ManagementToken(…)");
    }
}
