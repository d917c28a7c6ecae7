//! Workloads that are texts: tables, values, operations in TOML, so that whoever measures can write his own.
//!
//! ```text
//!   text --settings put in--> ScriptText --statements prepared--> Stage --threads--> requests
//!         (settings.rs)        (text.rs)  (binding.rs, fitting.rs)     (operations.rs)
//! ```
//!
//! All that can be wrong about a text is refused before anything is measured, in words: what the text alone shows when
//! it is read, what the types of markers show when a server has prepared the statements. The published sets of other
//! tools are such texts and lie in `crates/lab/workloads`; the words are explained in `docs/lab/workloads.md`.

mod bundled;
mod settings;
mod span;
mod template;
mod text;

mod choice;
mod generator;
mod maker;

mod binding;
mod bound;
mod check;
mod fitting;
mod plain;

mod audit;
mod held;
mod operations;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use protocol::Prepared;

use super::{Operations, Part, Workload};
use crate::error::LabError;
use crate::manifest::Plan;
use crate::results::Audit;
use audit::Auditor;
use binding::Binding;
use generator::Generator;
use operations::{Loader, Mixed, Stage};
use text::{Effect, KEYSPACE, OperationText, ScriptText, StatementText};

pub(super) use bundled::BUNDLED;

/// How the name of a file ends that holds a script.
const ENDING: &str = ".toml";

/// A workload of a text.
pub(crate) struct Script {
    text: ScriptText,
    partition_count: u64,
    /// Names of operations, then of those that were not applied.
    kinds: Vec<String>,
    /// Once the statements are prepared.
    stage: Option<Arc<Stage>>,
}

/// The name and the text that a plan's word stands for: a bundled script, or a file whose name ends in `.toml`. Nothing
/// if it is neither.
///
/// # Errors
/// The file can not be read, or is no script.
pub(crate) fn found(workload: &str) -> Result<Option<(String, String)>, LabError> {
    if let Some((name, text)) = BUNDLED.iter().find(|(name, _)| *name == workload) {
        return Ok(Some(((*name).to_owned(), (*text).to_owned())));
    }
    if !workload.ends_with(ENDING) {
        return Ok(None);
    }
    let of_file = |source| LabError::File { act: "read", path: workload.to_string(), source };
    let text = std::fs::read_to_string(Path::new(workload)).map_err(of_file)?;
    let name = read(workload, &text, &BTreeMap::new())?.name;
    Ok(Some((name, text)))
}

/// How many rows are loaded when nobody says how many.
pub(crate) fn default_row_count(plan: &Plan, text: &str) -> Result<u64, LabError> {
    let text = read(&plan.workload, text, &plan.settings)?;
    Ok(text.partitions.saturating_mul(text.rows_per_partition))
}

/// What a bundled script is for.
pub(crate) fn about(text: &str) -> String {
    let read = read("", text, &BTreeMap::new());
    read.map_or_else(|error| error.to_string(), |text| text.about)
}

fn read(name: &str, text: &str, settings: &BTreeMap<String, String>) -> Result<ScriptText, LabError> {
    let read = settings::put(text, settings).and_then(|text| ScriptText::read(&text));
    read.map_err(|why| LabError::Plan(format!("the workload {name}: {why}")))
}

impl Script {
    /// The script of this text, with the settings of a plan.
    ///
    /// # Errors
    /// It is no script, does not know a setting, or needs more rows.
    pub(super) fn of(plan: &Plan, text: &str) -> Result<Script, LabError> {
        let text = read(&plan.workload, text, &plan.settings)?;
        let (name, rows) = (&text.name, text.rows_per_partition);
        let refuse = |why: String| Err(LabError::Plan(why));
        if plan.row_count < rows {
            return refuse(format!("{name} has {rows} rows in each partition: so many at least"));
        }
        let partition_count = plan.row_count / rows;
        if text.holds() && partition_count > held::PARTITION_COUNT_MAX {
            let most = held::PARTITION_COUNT_MAX;
            return refuse(format!("{name} knows what each partition holds, and that of {most} at most"));
        }
        if let Some(times) =
            text.statements().iter().map(|(_, one)| one.times).find(|times| *times > partition_count)
        {
            return refuse(format!(
                "{name} asks for {times} partitions at once, and there are {partition_count}"
            ));
        }
        let kinds = text.kinds();
        Ok(Script { text, partition_count, kinds, stage: None })
    }

    /// # Panics
    /// When the statements have not been prepared: nothing is executed before they are.
    fn stage(&self) -> Arc<Stage> {
        self.stage.clone().expect("operations are made once the statements are prepared")
    }
}

impl ScriptText {
    /// All statements, in the order in which they are prepared: of the load, then of each operation its turns and its
    /// first, then of the audit. Each with who has it.
    fn statements(&self) -> Vec<(String, StatementText)> {
        let load = self.load.iter().map(|load| ("[load]".to_owned(), load.clone()));
        let of_operations = self.operation.iter().flat_map(|one| {
            let all = one.statements().into_iter().chain(one.first.clone());
            all.map(|statement| (format!("operation '{}'", one.name), statement))
        });
        let audit = self.audit.iter().map(|audit| ("[audit]".to_owned(), audit.statement()));
        load.chain(of_operations).chain(audit).collect()
    }

    /// Does some value depend on what a partition holds?
    fn holds(&self) -> bool {
        let holds = |value: &Generator| matches!(value, Generator::Held {} | Generator::Next { .. });
        self.values.values().any(holds)
    }

    fn kinds(&self) -> Vec<String> {
        let names = self.operation.iter().map(|one| one.name.clone());
        let conditional = self.operation.iter().filter(|one| one.has_condition());
        names.chain(conditional.map(|one| format!("{} (not applied)", one.name))).collect()
    }
}

impl OperationText {
    /// May it be not applied?
    fn has_condition(&self) -> bool {
        let is_condition = |one: &StatementText| one.effect() == Ok(Effect::Condition);
        self.statements().iter().chain(&self.first).any(is_condition)
    }
}

impl Workload for Script {
    fn tables(&self, keyspace: &str) -> Vec<String> {
        self.text.tables.iter().map(|table| table.replace(KEYSPACE, keyspace)).collect()
    }

    fn statements(&self, keyspace: &str) -> Vec<String> {
        let all = self.text.statements();
        all.iter().map(|(_, one)| one.whole().replace(KEYSPACE, keyspace)).collect()
    }

    fn learn(&mut self, prepared: &[Prepared]) -> Result<(), LabError> {
        let stage =
            Binding::new(&self.text, self.partition_count, prepared).and_then(|binding| binding.stage());
        let of_script = |why| LabError::Plan(format!("the workload {}: {why}", self.text.name));
        self.stage = Some(Arc::new(stage.map_err(of_script)?));
        Ok(())
    }

    fn kinds(&self) -> Vec<&str> {
        self.kinds.iter().map(String::as_str).collect()
    }

    fn loader(&self, part: Part) -> Box<dyn Operations> {
        Box::new(Loader::new(self.stage(), part))
    }

    fn operations(&self, part: Part) -> Box<dyn Operations> {
        Box::new(Mixed::new(self.stage(), part))
    }

    fn auditor(&self, part: Part) -> Option<Box<dyn Operations>> {
        let stage = self.stage();
        if part.index == 0 {
            stage.auditing.iter().for_each(audit::Auditing::forget);
        }
        stage.auditing.is_some().then(|| -> Box<dyn Operations> { Box::new(Auditor::new(stage, part)) })
    }

    fn begin_audit(&self) {
        self.stage().auditing.iter().for_each(audit::Auditing::begin);
    }

    fn audited(&self) -> Option<Audit> {
        self.stage().auditing.as_ref().map(audit::Auditing::verdict)
    }
}
