//! Which keyspaces are the system's own.
//!
//! By name alone, in any case, as Cassandra has it: `CREATE KEYSPACE "System"` is refused too.

use crate::QueryError;

/// Keyspaces of one node: no statement changes them.
const LOCAL: [&str; 2] = ["system", "system_schema"];
/// Keyspaces whose rows are made up.
const VIRTUAL: [&str; 2] = ["system_views", "system_virtual_schema"];
/// Keyspaces of the whole cluster: only their replication can be changed.
const REPLICATED: [&str; 3] = ["system_auth", "system_distributed", "system_traces"];

fn is_among(names: &[&str], keyspace: &str) -> bool {
    names.iter().any(|name| keyspace.eq_ignore_ascii_case(name))
}

/// Does this keyspace belong to one node and can not be changed at all?
pub(super) fn is_local_system_keyspace(keyspace: &str) -> bool {
    is_among(&LOCAL, keyspace) || is_among(&VIRTUAL, keyspace)
}

/// Is this keyspace any of the system's?
pub(crate) fn is_system_keyspace(keyspace: &str) -> bool {
    is_local_system_keyspace(keyspace) || is_among(&REPLICATED, keyspace)
}

/// What a statement wants to do, as permissions name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    Create,
    Alter,
    Drop,
}

/// What it wants to do it to, as permissions name it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resource<'a> {
    Keyspace,
    AllTables,
    Table(&'a str),
}

/// Refuses what nobody may do to a keyspace of the system.
pub(super) fn check_permitted(
    keyspace: &str,
    permission: Permission,
    resource: Resource<'_>,
) -> Result<(), QueryError> {
    if is_local_system_keyspace(keyspace) {
        return Err(QueryError::Unauthorized(format!("{keyspace} keyspace is not user-modifiable.")));
    }
    if !is_system_keyspace(keyspace) {
        return Ok(());
    }
    let act = match permission {
        Permission::Create => "CREATE",
        Permission::Alter => "ALTER",
        Permission::Drop => "DROP",
    };
    let what = match resource {
        Resource::Keyspace if permission == Permission::Alter => return Ok(()),
        Resource::Keyspace => format!("<keyspace {keyspace}>"),
        Resource::AllTables => format!("<all tables in {keyspace}>"),
        Resource::Table(table) => format!("<table {keyspace}.{table}>"),
    };
    Err(QueryError::Unauthorized(format!("Cannot {act} {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_replication_of_replicated_system_keyspaces_may_change() {
        let refusal = |keyspace, permission, resource| {
            check_permitted(keyspace, permission, resource).err().map(|error| error.to_string())
        };
        assert_eq!(refusal("system_auth", Permission::Alter, Resource::Keyspace), None);
        assert_eq!(
            refusal("system_auth", Permission::Drop, Resource::Table("roles")).as_deref(),
            Some("Cannot DROP <table system_auth.roles>")
        );
        assert_eq!(
            refusal("System", Permission::Alter, Resource::Keyspace).as_deref(),
            Some("System keyspace is not user-modifiable.")
        );
        assert_eq!(refusal("mine", Permission::Drop, Resource::Keyspace), None);
    }
}
