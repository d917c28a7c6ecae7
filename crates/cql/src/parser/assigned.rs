//! Which columns an UPDATE has set so far.

use std::collections::{HashMap, HashSet};

use crate::ast::{Assignment, AssignmentAction, Ident};

/// Up to so many assignments are simply compared with each other; beyond, an index is built, so
/// that a client cannot make the parser spend the square of a statement's length.
const COMPARED_COUNT_MAX: usize = 16;

/// Tells whether one more assignment goes with those before it.
#[derive(Default)]
pub(super) struct AssignedColumns {
    /// Empty until there are more assignments than are compared.
    columns: HashMap<Ident, AssignedParts>,
}

/// What is set of a column.
enum AssignedParts {
    Whole,
    /// Elements, additions and these fields.
    Parts(HashSet<Ident>),
}

impl AssignedColumns {
    /// Whether a new assignment may follow those, each of which has been asked about in turn.
    pub(super) fn is_compatible(&mut self, earlier: &[Assignment], new: &Assignment) -> bool {
        if earlier.len() < COMPARED_COUNT_MAX {
            return earlier
                .iter()
                .all(|old| old.column != new.column || are_compatible(&old.action, &new.action));
        }
        if self.columns.is_empty() {
            earlier.iter().for_each(|assignment| {
                self.add(assignment);
            });
        }
        self.add(new)
    }

    /// Adds an assignment; false if it does not go with the others.
    fn add(&mut self, assignment: &Assignment) -> bool {
        let is_whole = matches!(assignment.action, AssignmentAction::Set(_));
        let Some(parts) = self.columns.get_mut(&assignment.column) else {
            let mut parts =
                if is_whole { AssignedParts::Whole } else { AssignedParts::Parts(HashSet::new()) };
            parts.add_field(&assignment.action);
            self.columns.insert(assignment.column.clone(), parts);
            return true;
        };
        !is_whole && parts.add_field(&assignment.action)
    }
}

impl AssignedParts {
    /// Adds what an action sets if it is a part; false if that is set already.
    fn add_field(&mut self, action: &AssignmentAction) -> bool {
        match (self, action) {
            (AssignedParts::Whole, _) => false,
            (AssignedParts::Parts(fields), AssignmentAction::SetField(field, _)) => {
                fields.insert(field.clone())
            }
            _ => true,
        }
    }
}

fn are_compatible(old: &AssignmentAction, new: &AssignmentAction) -> bool {
    match (old, new) {
        (AssignmentAction::Set(_), _) | (_, AssignmentAction::Set(_)) => false,
        (AssignmentAction::SetField(one, _), AssignmentAction::SetField(other, _)) => one != other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse_statement;

    fn is_accepted(assignments: &str) -> bool {
        parse_statement(&format!("UPDATE t SET {assignments} WHERE k = 1")).is_ok()
    }

    #[test]
    fn few_and_many_assignments_are_judged_alike() {
        let many: String = (0..40).map(|index| format!("x{index} = 1, ")).collect();
        for (assignments, expected) in [
            ("a = 1, b = 2", true),
            ("a = 1, a = 2", false),
            ("a = 1, a[1] = 2", false),
            ("a[1] = 2, a = 1", false),
            ("a[1] = 2, a[1] = 3", true),
            ("a = a + 1, a = a + 2", true),
            ("a.b = 1, a.c = 2, a[1] = 3", true),
            ("a.b = 1, a.b = 2", false),
            ("a.b = 1, a = 2", false),
        ] {
            assert_eq!(is_accepted(assignments), expected, "{assignments}");
            assert_eq!(is_accepted(&format!("{many}{assignments}")), expected, "many, {assignments}");
        }
        assert!(!is_accepted(&format!("{many}x0 = 1")));
    }
}
