//! Statements about roles, users, permissions and identities.

use super::{CqlTypeName, Ident, Literal, QualifiedName};
use crate::text::Text;

/// `CREATE ROLE`, `ALTER ROLE`: the flag is `IF NOT EXISTS` or `IF EXISTS`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoleDefinition {
    /// `IF [NOT] EXISTS`
    pub if_clause: bool,
    /// The role.
    pub name: RoleName,
    /// `WITH`
    pub options: Vec<RoleOption>,
}

/// The name of a role or user: an identifier (folded) or a string.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoleName(pub Text);

/// One option of a role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RoleOption {
    /// `PASSWORD = 'text'`
    Password(Text),
    /// `HASHED PASSWORD = 'text'`
    HashedPassword(Text),
    /// `OPTIONS = {…}`
    Options(Vec<(Literal, Literal)>),
    /// `SUPERUSER = true`
    Superuser(bool),
    /// `LOGIN = true`
    Login(bool),
    /// `ACCESS TO ALL DATACENTERS`
    AllDatacenters,
    /// `ACCESS TO DATACENTERS {…}`
    Datacenters(Vec<Text>),
    /// `ACCESS FROM ALL CIDRS`
    AllCidrs,
    /// `ACCESS FROM CIDRS {…}`
    Cidrs(Vec<Text>),
}

/// `CREATE USER`, `ALTER USER`: the flag is `IF NOT EXISTS` or `IF EXISTS`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserDefinition {
    /// `IF [NOT] EXISTS`
    pub if_clause: bool,
    /// The user.
    pub name: RoleName,
    /// `WITH [HASHED] PASSWORD`: only these two options.
    pub password: Option<RoleOption>,
    /// `SUPERUSER` or `NOSUPERUSER`
    pub superuser: Option<bool>,
}

/// `DROP ROLE`, `DROP USER`, `DROP IDENTITY`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DropRole {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// What is dropped.
    pub name: RoleName,
}

/// `ADD IDENTITY 'x' TO ROLE y`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddIdentity {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The identity.
    pub identity: RoleName,
    /// The role.
    pub role: RoleName,
}

/// `LIST ROLES`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListRoles {
    /// `OF role`
    pub of: Option<RoleName>,
    /// `NORECURSIVE`
    pub is_no_recursive: bool,
}

/// `GRANT role TO grantee`, `REVOKE role FROM revokee`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoleGrant {
    /// The role that is granted or revoked.
    pub role: RoleName,
    /// To whom or from whom.
    pub grantee: RoleName,
}

/// `GRANT permissions ON resource TO grantee`, `REVOKE … FROM …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermissionGrant {
    /// The permissions.
    pub permissions: Permissions,
    /// On what.
    pub resource: Resource,
    /// To whom or from whom.
    pub grantee: RoleName,
}

/// `LIST permissions [ON resource] [OF role]`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListPermissions {
    /// The permissions.
    pub permissions: Permissions,
    /// On what.
    pub resource: Option<Resource>,
    /// Whose.
    pub of: Option<RoleName>,
    /// `NORECURSIVE`
    pub is_no_recursive: bool,
}

/// `ALL [PERMISSIONS]` or a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Permissions {
    /// `ALL`
    All,
    /// At least one.
    Some(Vec<Permission>),
}

/// A right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// `CREATE`
    Create,
    /// `ALTER`
    Alter,
    /// `DROP`
    Drop,
    /// `SELECT`
    Select,
    /// `MODIFY`
    Modify,
    /// `AUTHORIZE`
    Authorize,
    /// `DESCRIBE`
    Describe,
    /// `EXECUTE`
    Execute,
    /// `UNMASK`
    Unmask,
    /// `SELECT_MASKED`
    SelectMasked,
}

/// What a right is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// `ALL KEYSPACES`
    AllKeyspaces,
    /// `KEYSPACE name`
    Keyspace(Ident),
    /// `[TABLE] name`
    Table(QualifiedName),
    /// `ALL TABLES IN KEYSPACE name`
    AllTables(Ident),
    /// `ALL ROLES`
    AllRoles,
    /// `ROLE name`
    Role(RoleName),
    /// `ALL FUNCTIONS`
    AllFunctions,
    /// `ALL FUNCTIONS IN KEYSPACE name`
    AllFunctionsIn(Ident),
    /// `FUNCTION name(int)`
    Function(QualifiedName, Vec<CqlTypeName>),
    /// `ALL MBEANS`
    AllMbeans,
    /// `MBEAN 'name'`
    Mbean(Text),
    /// `MBEANS 'pattern'`
    Mbeans(Text),
}
