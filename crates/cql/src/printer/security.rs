//! Roles, users, permissions and identities.

use std::fmt::{self, Display, Formatter};

use super::name::{FunctionName, Quoted};
use super::{ands, commas, entries};
use crate::ast::{
    AddIdentity, DropRole, ListPermissions, ListRoles, Permission, Permissions, Resource, RoleDefinition,
    RoleName, RoleOption, UserDefinition,
};
use crate::printer::schema::{if_exists, if_not_exists};
use crate::text::Text;

/// Always as a string: the only form that every statement takes.
impl Display for RoleName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Quoted(&self.0).fmt(f)
    }
}

/// Without `CREATE ROLE` or `ALTER ROLE` and its IF in front.
impl Display for RoleDefinition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        if self.options.is_empty() { Ok(()) } else { write!(f, " WITH {}", ands(&self.options)) }
    }
}

impl Display for RoleOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            RoleOption::Password(text) => write!(f, "PASSWORD = {}", Quoted(text)),
            RoleOption::HashedPassword(text) => write!(f, "HASHED PASSWORD = {}", Quoted(text)),
            RoleOption::Options(options) => write!(f, "OPTIONS = {{{}}}", entries(options)),
            RoleOption::Superuser(is_set) => write!(f, "SUPERUSER = {is_set}"),
            RoleOption::Login(is_set) => write!(f, "LOGIN = {is_set}"),
            RoleOption::AllDatacenters => f.write_str("ACCESS TO ALL DATACENTERS"),
            RoleOption::Datacenters(names) => write!(f, "ACCESS TO DATACENTERS {}", Braces(names)),
            RoleOption::AllCidrs => f.write_str("ACCESS FROM ALL CIDRS"),
            RoleOption::Cidrs(names) => write!(f, "ACCESS FROM CIDRS {}", Braces(names)),
        }
    }
}

/// `{'a', 'b'}`
struct Braces<'a>(&'a [Text]);

impl Display for Braces<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let strings: Vec<_> = self.0.iter().map(Quoted).collect();
        write!(f, "{{{}}}", commas(&strings))
    }
}

/// Without `CREATE USER` or `ALTER USER` and its IF in front.
impl Display for UserDefinition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)?;
        match &self.password {
            Some(RoleOption::Password(text)) => write!(f, " WITH PASSWORD {}", Quoted(text))?,
            Some(RoleOption::HashedPassword(text)) => write!(f, " WITH HASHED PASSWORD {}", Quoted(text))?,
            _ => {}
        }
        f.write_str(match self.superuser {
            Some(true) => " SUPERUSER",
            Some(false) => " NOSUPERUSER",
            None => "",
        })
    }
}

/// Without `DROP ROLE`, `DROP USER` or `DROP IDENTITY` in front.
impl Display for DropRole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if_exists(self.if_exists), self.name)
    }
}

impl Display for AddIdentity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let condition = if_not_exists(self.if_not_exists);
        write!(f, "ADD IDENTITY {condition}{} TO ROLE {}", self.identity, self.role)
    }
}

impl Display for ListRoles {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "LIST ROLES{}", Whose(&self.of, self.is_no_recursive))
    }
}

impl Display for ListPermissions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "LIST {}", self.permissions)?;
        if let Some(resource) = &self.resource {
            write!(f, " ON {resource}")?;
        }
        Whose(&self.of, self.is_no_recursive).fmt(f)
    }
}

/// ` OF role NORECURSIVE`
struct Whose<'a>(&'a Option<RoleName>, bool);

impl Display for Whose<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(role) = self.0 {
            write!(f, " OF {role}")?;
        }
        if self.1 { f.write_str(" NORECURSIVE") } else { Ok(()) }
    }
}

impl Display for Permissions {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Permissions::All => f.write_str("ALL PERMISSIONS"),
            Permissions::Some(permissions) => commas(permissions).fmt(f),
        }
    }
}

impl Display for Permission {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Permission::Create => "CREATE",
            Permission::Alter => "ALTER",
            Permission::Drop => "DROP",
            Permission::Select => "SELECT",
            Permission::Modify => "MODIFY",
            Permission::Authorize => "AUTHORIZE",
            Permission::Describe => "DESCRIBE",
            Permission::Execute => "EXECUTE",
            Permission::Unmask => "UNMASK",
            Permission::SelectMasked => "SELECT_MASKED",
        })
    }
}

impl Display for Resource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Resource::AllKeyspaces => f.write_str("ALL KEYSPACES"),
            Resource::Keyspace(name) => write!(f, "KEYSPACE {name}"),
            Resource::Table(name) => write!(f, "TABLE {name}"),
            Resource::AllTables(keyspace) => write!(f, "ALL TABLES IN KEYSPACE {keyspace}"),
            Resource::AllRoles => f.write_str("ALL ROLES"),
            Resource::Role(name) => write!(f, "ROLE {name}"),
            Resource::AllFunctions => f.write_str("ALL FUNCTIONS"),
            Resource::AllFunctionsIn(keyspace) => write!(f, "ALL FUNCTIONS IN KEYSPACE {keyspace}"),
            Resource::Function(name, arguments) => {
                write!(f, "FUNCTION {}({})", FunctionName(name), commas(arguments))
            }
            Resource::AllMbeans => f.write_str("ALL MBEANS"),
            Resource::Mbean(name) => write!(f, "MBEAN {}", Quoted(name)),
            Resource::Mbeans(pattern) => write!(f, "MBEANS {}", Quoted(pattern)),
        }
    }
}
