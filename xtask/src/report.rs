//! What a command has to say at its end.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Mutex;

/// What failed so far, for whoever reads only the end.
static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says what failed, as `println!` would, and keeps it for the summary.
macro_rules! complain {
    ($($what:tt)*) => { $crate::report::keep(format!($($what)*)) };
}
pub(crate) use complain;

/// See `complain!`.
pub(crate) fn keep(complaint: String) {
    println!("*** {complaint}");
    COMPLAINTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(complaint);
}

/// Takes all that was complained of.
pub(crate) fn complaints() -> Vec<String> {
    std::mem::take(&mut *COMPLAINTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// How many things were checked, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    /// One thing that passed.
    pub(crate) const PASS: Tally = Tally { passed: 1, failed: 0 };
    /// One thing that failed.
    pub(crate) const FAIL: Tally = Tally { passed: 0, failed: 1 };
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Why a command could not do its work at all.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure in words.
    pub(crate) fn new(what: impl Into<String>) -> Failure {
        Failure(what.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Failure(text)
    }
}
