//! A script as its text has it: tables, values, operations. What can be refused without a server is refused here.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::generator::Generator;
use super::span::{Distribution, Span};

/// What stands for the name of the keyspace.
pub(super) const KEYSPACE: &str = "{keyspace}";
/// What stands for the markers of an IN.
const TIMES: &str = "{times}";
/// A request has at most 65,535 values.
const TIMES_MAX: u64 = 10_000;

/// The whole text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ScriptText {
    pub(super) name: String,
    pub(super) about: String,
    /// How many partitions there are when nobody says how many rows.
    #[serde(default = "partitions")]
    pub(super) partitions: u64,
    #[serde(default = "one")]
    pub(super) rows_per_partition: u64,
    /// How an operation chooses its partition, unless it says otherwise.
    #[serde(default)]
    pub(super) partition: Distribution,
    /// How it chooses a row in it.
    #[serde(default)]
    pub(super) row: Distribution,
    /// Were taken out before; they only have to be allowed here.
    #[serde(default, rename = "settings")]
    _settings: BTreeMap<String, toml::Value>,
    pub(super) tables: Vec<String>,
    #[serde(default)]
    pub(super) values: BTreeMap<String, Generator>,
    pub(super) load: Option<StatementText>,
    #[serde(default)]
    pub(super) operation: Vec<OperationText>,
    pub(super) audit: Option<AuditText>,
}

/// How counters are read, to hold them against what was acknowledged.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditText {
    /// The operation that adds one.
    pub(super) counts: String,
    statement: String,
    #[serde(default)]
    values: Vec<String>,
}

impl AuditText {
    /// Reads the counters of a partition.
    pub(super) fn statement(&self) -> StatementText {
        StatementText::of(&self.statement, &self.values)
    }
}

/// A statement with the values of its markers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatementText {
    pub(super) statement: String,
    /// Names of values, in the order of the markers.
    #[serde(default)]
    pub(super) values: Vec<String>,
    /// How many rows an answer must have.
    pub(super) rows: Option<Span>,
    /// So many partitions in one request: a batch of statements, or an IN of keys.
    #[serde(default = "one")]
    pub(super) times: u64,
    /// What kind of batch; logged, if none.
    batch: Option<BatchKind>,
}

/// Whether a batch is written as a whole, whatever fails meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BatchKind {
    Logged,
    Unlogged,
}

/// One kind of operation: a statement, or several in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OperationText {
    pub(super) name: String,
    #[serde(default = "weight")]
    pub(super) weight: f64,
    pub(super) partition: Option<Distribution>,
    pub(super) row: Option<Distribution>,
    statement: Option<String>,
    #[serde(default)]
    values: Vec<String>,
    rows: Option<Span>,
    #[serde(default = "one")]
    times: u64,
    batch: Option<BatchKind>,
    #[serde(default)]
    turns: Vec<StatementText>,
    /// What is done instead with a partition of which it is not known what it holds.
    pub(super) first: Option<StatementText>,
}

fn partitions() -> u64 {
    100_000
}

fn one() -> u64 {
    1
}

fn weight() -> f64 {
    1.0
}

impl ScriptText {
    /// Reads a text in which all settings have been put. Operations of weight 0 are left out.
    ///
    /// # Errors
    /// Why it is no script, with the line if there is one.
    pub(super) fn read(text: &str) -> Result<ScriptText, String> {
        let mut script: ScriptText = toml::from_str(text).map_err(|error| in_line(text, &error))?;
        script.check()?;
        script.operation.retain(|operation| operation.weight > 0.0);
        Ok(script)
    }

    fn check_audit(&self) -> Result<(), String> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let statement = audit.statement();
        statement.check()?;
        let counted = self.operation.iter().find(|operation| operation.name == audit.counts);
        let statements = counted.map(OperationText::statements).unwrap_or_default();
        let adds_one = |one: &StatementText| one.effect() == Ok(Effect::Write) && one.times == 1;
        match () {
            () if statement.effect()? != Effect::Read => Err("counters are read by a SELECT".to_owned()),
            () if statements.is_empty() => Err(format!("there is no operation '{}'", audit.counts)),
            () if !statements.iter().all(adds_one) => {
                Err(format!("'{}' is no operation that adds one to a counter", audit.counts))
            }
            () => Ok(()),
        }
    }

    fn check(&self) -> Result<(), String> {
        let is_word = |name: &str| {
            !name.is_empty()
                && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '-' || one == '_')
        };
        match () {
            () if !is_word(&self.name) => {
                Err(format!("'{}' is no name: letters, digits, - and _ make one", self.name))
            }
            () if self.partitions == 0 || self.rows_per_partition == 0 => {
                Err("tables without partitions, or partitions without rows, measure nothing".to_owned())
            }
            () if self.tables.is_empty() => Err("there are no tables".to_owned()),
            () if self.operation.is_empty() => Err("there is no [[operation]]".to_owned()),
            () if self.operation.iter().all(|one| one.weight == 0.0) => {
                Err("all operations have the weight 0".to_owned())
            }
            () => Ok(()),
        }?;
        self.tables.iter().try_for_each(|table| names_keyspace(table))?;
        self.load.iter().try_for_each(StatementText::check).map_err(|why| format!("[load]: {why}"))?;
        if self.load.iter().any(|load| load.times > 1) {
            return Err("[load]: rows are loaded one by one".to_owned());
        }
        self.check_audit().map_err(|why| format!("[audit]: {why}"))?;
        for (index, operation) in self.operation.iter().enumerate() {
            let of_operation = |why: String| format!("operation '{}': {why}", operation.name);
            operation.check().map_err(of_operation)?;
            if self.operation[..index].iter().any(|other| other.name == operation.name) {
                return Err(format!("two operations are called '{}'", operation.name));
            }
            let is_new = operation.partition.unwrap_or(self.partition) == Distribution::Next;
            if is_new && operation.statements().iter().any(|one| one.times > 1) {
                return Err(of_operation("new partitions are written one by one".to_owned()));
            }
            let row = operation.row.unwrap_or(self.row);
            if matches!(row, Distribution::Latest | Distribution::Next) {
                return Err(of_operation(
                    "rows of a partition can be neither 'latest' nor 'next'".to_owned(),
                ));
            }
        }
        Ok(())
    }
}

impl OperationText {
    fn check(&self) -> Result<(), String> {
        if !(self.weight >= 0.0 && self.weight.is_finite()) {
            return Err(format!("{} is no weight", self.weight));
        }
        if self.statement.is_some() != self.turns.is_empty() {
            return Err("it has either a statement or turns".to_owned());
        }
        let has_own =
            !self.values.is_empty() || self.rows.is_some() || self.times != 1 || self.batch.is_some();
        if self.statement.is_none() && has_own {
            return Err("each of its turns has its own values, rows, times and batch".to_owned());
        }
        self.statements().iter().chain(&self.first).try_for_each(StatementText::check)
    }

    /// Its statements, which take turns.
    pub(super) fn statements(&self) -> Vec<StatementText> {
        let alone = self.statement.as_ref().map(|statement| StatementText {
            statement: statement.clone(),
            values: self.values.clone(),
            rows: self.rows,
            times: self.times,
            batch: self.batch,
        });
        alone.into_iter().chain(self.turns.iter().cloned()).collect()
    }
}

/// What a statement is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Rows.
    Read,
    /// Nothing.
    Write,
    /// Whether it was applied.
    Condition,
}

impl StatementText {
    /// On one partition, its rows not counted.
    pub(super) fn of(statement: &str, values: &[String]) -> StatementText {
        let (statement, values) = (statement.to_owned(), values.to_vec());
        StatementText { statement, values, rows: None, times: 1, batch: None }
    }

    fn check(&self) -> Result<(), String> {
        names_keyspace(&self.statement)?;
        let is_rows_of_read = self.rows.is_none() || self.effect()? == Effect::Read;
        if !is_rows_of_read {
            return Err(format!("only a SELECT has rows, and `{}` is none", self.statement));
        }
        let names_times = self.statement.contains(TIMES);
        match self.effect()? {
            _ if self.times == 0 || self.times > TIMES_MAX => {
                Err(format!("{} is no number of partitions: 1 to {TIMES_MAX}", self.times))
            }
            Effect::Read if self.times > 1 && !names_times => {
                Err(format!("a SELECT of several partitions says IN ({TIMES})"))
            }
            Effect::Read if names_times && self.values.len() != 1 => {
                Err(format!("where {TIMES} stands, there is one value, and no other marker"))
            }
            Effect::Condition if self.times > 1 => Err("conditions are on one partition".to_owned()),
            Effect::Write if names_times => Err(format!("only a SELECT says {TIMES}")),
            effect if self.batch.is_some() && (effect == Effect::Read || self.times == 1) => {
                Err("a batch is of writes to several partitions: it has times".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// As a server gets it: of several partitions, a batch, or one marker for each.
    pub(super) fn whole(&self) -> String {
        let times = self.times as usize;
        match self.effect() {
            Ok(Effect::Read) => self.statement.replace(TIMES, &vec!["?"; times].join(", ")),
            _ if times > 1 => {
                let kind = if self.batch == Some(BatchKind::Unlogged) { "UNLOGGED " } else { "" };
                format!("BEGIN {kind}BATCH {}APPLY BATCH", format!("{}; ", self.statement).repeat(times))
            }
            _ => self.statement.clone(),
        }
    }

    /// What its answer is.
    pub(super) fn effect(&self) -> Result<Effect, String> {
        // Whether a quoted text says IF does not matter: every second piece between quotes is one.
        let unquoted = self.statement.split(['\'', '"']).step_by(2);
        let words: Vec<String> = unquoted
            .flat_map(|text| text.split(|one: char| !one.is_ascii_alphanumeric() && one != '_'))
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_uppercase)
            .collect();
        match words.first().map(String::as_str) {
            Some("SELECT") => Ok(Effect::Read),
            Some("INSERT" | "UPDATE" | "DELETE" | "BEGIN") => {
                let has_condition = words.iter().any(|word| word == "IF");
                Ok(if has_condition { Effect::Condition } else { Effect::Write })
            }
            _ => Err(format!("`{}` is no SELECT, INSERT, UPDATE, DELETE or BEGIN BATCH", self.statement)),
        }
    }
}

fn names_keyspace(statement: &str) -> Result<(), String> {
    let names = statement.contains(KEYSPACE);
    if names { Ok(()) } else { Err(format!("`{statement}` does not say {KEYSPACE}, as in {KEYSPACE}.users")) }
}

/// An error of the parser in one line, with the number of the line it is about.
pub(super) fn in_line(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    match error.span() {
        Some(span) => {
            let line = 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count();
            format!("line {line}: {message}")
        }
        None => message.to_owned(),
    }
}
