//! Scripts of CQL statements with the answers that a real Cassandra gave.
//!
//! A script is read by people first:
//!
//! ```text
//!   -- A comment.
//!   --@ page 2                          what goes with the next statement
//!   SELECT k, v FROM t;                 a statement ends with `;` at a line's end
//!   > script.t: k int | v text          the answer, recorded; all lines begin with `>`
//!   > 1 | 'a'
//!   > 2 | null
//! ```
//!
//! Each script has a keyspace of its own, named like the file, made before and dropped after it.
//! The answers of a script are text; to replay is to record again and compare. Directives:
//!
//! | directive | what it does |
//! |---|---|
//! | `--@ protocol 4` | from here on speak this protocol version, on a new connection |
//! | `--@ prepare` | prepare the next statement, print what it says about itself |
//! | `--@ values 0x00000001 null unset name=0x61` | prepare it and execute it with these bytes |
//! | `--@ query-values …` | the same in one QUERY, without preparing |
//! | `--@ page 2` | fetch it in pages of so many rows, each printed apart |
//! | `--@ mask column …` | print `*` in place of these columns' values |
//! | `--@ ring pause 2 3` | hurt nodes of a ring (`xtask/src/ring/answers.rs`) |
//! | `--@ consistency N`, `--@ serial N`, `--@ timestamp N`, `--@ keyspace K`, `--@ now N` | as in the protocol |

mod parse;
mod play;

pub(crate) use parse::{Item, Script, Statement, Values};
pub(crate) use play::{Hurt, Player, answer_lines};

use std::path::PathBuf;

/// What can be wrong with a script, or stop it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptError {
    #[error("read script {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("line {line}: unknown directive `{text}`")]
    Directive { line: usize, text: String },
    #[error("line {line}: statement has no end")]
    Unfinished { line: usize },
    #[error("line {line}: {source}")]
    Play { line: usize, source: crate::wire::WireError },
    #[error("`{text}`: {what}")]
    Ring { text: String, what: String },
}
