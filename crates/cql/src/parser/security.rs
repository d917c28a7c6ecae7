//! Permissions and the things they are about.

use super::Parser;
use super::failure::Outcome;
use super::name::is_name;
use crate::ast::{
    ListPermissions, Permission, PermissionGrant, Permissions, Resource, RoleGrant, RoleName, StatementKind,
};
use crate::lexer::TokenKind;

fn permission_of(kind: TokenKind) -> Option<Permission> {
    Some(match kind {
        TokenKind::Create => Permission::Create,
        TokenKind::Alter => Permission::Alter,
        TokenKind::Drop => Permission::Drop,
        TokenKind::Select => Permission::Select,
        TokenKind::Modify => Permission::Modify,
        TokenKind::Authorize => Permission::Authorize,
        TokenKind::Describe => Permission::Describe,
        TokenKind::Execute => Permission::Execute,
        TokenKind::Unmask => Permission::Unmask,
        TokenKind::SelectMasked => Permission::SelectMasked,
        _ => return None,
    })
}

impl Parser<'_> {
    /// `GRANT …`: a role or permissions.
    pub(super) fn grant(&mut self) -> Outcome<StatementKind> {
        if let Some(role) = self.granted_role(TokenKind::To)? {
            return Ok(StatementKind::GrantRole(RoleGrant { role, grantee: self.role_name()? }));
        }
        Ok(StatementKind::GrantPermissions(self.permission_grant(TokenKind::To)?))
    }

    /// `REVOKE …`: a role or permissions.
    pub(super) fn revoke(&mut self) -> Outcome<StatementKind> {
        if let Some(role) = self.granted_role(TokenKind::From)? {
            return Ok(StatementKind::RevokeRole(RoleGrant { role, grantee: self.role_name()? }));
        }
        Ok(StatementKind::RevokePermissions(self.permission_grant(TokenKind::From)?))
    }

    /// `role TO`, if that comes rather than permissions; a role may be called like a permission.
    fn granted_role(&mut self, preposition: TokenKind) -> Outcome<Option<RoleName>> {
        let kind = self.kind_at(1);
        let is_permission = kind == TokenKind::All || permission_of(kind).is_some();
        if !is_permission && !is_name(kind) && !is_string(kind) && kind != TokenKind::QuestionMark {
            return Err(self.no_viable_ahead(1));
        }
        if kind == TokenKind::All
            && ![preposition, TokenKind::On, TokenKind::Permissions].contains(&self.kind_at(2))
        {
            return Err(self.no_viable_ahead(2));
        }
        let is_permission = is_permission && (!is_name(kind) || self.kind_at(2) != preposition);
        self.advance();
        if is_permission {
            return Ok(None);
        }
        let role = self.role_name()?;
        self.expect(preposition)?;
        Ok(Some(role))
    }

    fn permission_grant(&mut self, preposition: TokenKind) -> Outcome<PermissionGrant> {
        let permissions = self.permissions()?;
        self.expect(TokenKind::On)?;
        let resource = self.resource()?;
        self.check_permissions(&permissions, &resource)?;
        self.expect(preposition)?;
        Ok(PermissionGrant { permissions, resource, grantee: self.role_name()? })
    }

    /// Behind `LIST`.
    pub(super) fn list_permissions(&mut self) -> Outcome<ListPermissions> {
        let permissions = self.permissions()?;
        let resource = if self.accept(TokenKind::On) { Some(self.resource()?) } else { None };
        let of = if self.accept(TokenKind::Of) { Some(self.role_name()?) } else { None };
        let is_no_recursive = self.accept(TokenKind::Norecursive);
        Ok(ListPermissions { permissions, resource, of, is_no_recursive })
    }

    fn permissions(&mut self) -> Outcome<Permissions> {
        if self.accept(TokenKind::All) {
            self.accept(TokenKind::Permissions);
            return Ok(Permissions::All);
        }
        let permissions = self.separated(TokenKind::Comma, |parser| {
            let permission = permission_of(parser.kind()).ok_or_else(|| parser.no_viable())?;
            parser.advance();
            parser.accept(TokenKind::Permission);
            Ok(permission)
        })?;
        Ok(Permissions::Some(permissions))
    }

    fn resource(&mut self) -> Outcome<Resource> {
        let next = if is_name(self.kind()) { self.kind_at(1) } else { TokenKind::End };
        match (self.kind(), next) {
            (TokenKind::All, TokenKind::Keyspaces) => Ok(self.short_resource(Resource::AllKeyspaces)),
            (TokenKind::All, TokenKind::Roles) => Ok(self.short_resource(Resource::AllRoles)),
            (TokenKind::All, TokenKind::Mbeans) => Ok(self.short_resource(Resource::AllMbeans)),
            (TokenKind::All, TokenKind::Tables) => {
                self.advance();
                self.expect_all(&[TokenKind::Tables, TokenKind::In, TokenKind::Keyspace])?;
                Ok(Resource::AllTables(self.keyspace_name()?))
            }
            (TokenKind::All, TokenKind::Functions) => {
                self.advance();
                self.advance();
                if !self.accept(TokenKind::In) {
                    return Ok(Resource::AllFunctions);
                }
                self.expect(TokenKind::Keyspace)?;
                Ok(Resource::AllFunctionsIn(self.keyspace_name()?))
            }
            (TokenKind::Keyspace, _) => {
                self.advance();
                Ok(Resource::Keyspace(self.keyspace_name()?))
            }
            (TokenKind::Table, _) => {
                self.advance();
                Ok(Resource::Table(self.table_name()?))
            }
            (TokenKind::Role, next) if is_name(next) || is_string(next) => {
                self.advance();
                Ok(Resource::Role(self.role_name()?))
            }
            (TokenKind::Function, next) if is_name(next) => {
                self.advance();
                let name = self.function_name()?;
                let arguments = self.argument_types()?;
                arguments
                    .map(|arguments| Resource::Function(name, arguments))
                    .ok_or_else(|| self.mismatched(TokenKind::OpenParenthesis))
            }
            (TokenKind::Mbean, next) if is_string(next) => {
                self.advance();
                Ok(Resource::Mbean(self.string()?))
            }
            (TokenKind::Mbeans, next) if is_string(next) => {
                self.advance();
                Ok(Resource::Mbeans(self.string()?))
            }
            (kind, _) if is_name(kind) || kind == TokenKind::QuestionMark => {
                Ok(Resource::Table(self.table_name()?))
            }
            _ => Err(self.no_viable()),
        }
    }

    /// A resource of two words.
    fn short_resource(&mut self, resource: Resource) -> Resource {
        self.advance();
        self.advance();
        resource
    }

    /// At least one of the permissions must make sense for the resource.
    fn check_permissions(&self, permissions: &Permissions, resource: &Resource) -> Outcome<()> {
        use Permission::*;
        let Permissions::Some(permissions) = permissions else { return Ok(()) };
        let (class, applicable): (_, &[Permission]) = match resource {
            Resource::Table(_) => {
                ("DataResource", &[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked])
            }
            Resource::AllTables(_) | Resource::AllKeyspaces | Resource::Keyspace(_) => {
                ("DataResource", &[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked])
            }
            Resource::AllRoles => ("RoleResource", &[Create, Alter, Drop, Authorize, Describe]),
            Resource::Role(_) => ("RoleResource", &[Alter, Drop, Authorize]),
            Resource::AllFunctions | Resource::AllFunctionsIn(_) => {
                ("FunctionResource", &[Create, Alter, Drop, Authorize, Execute])
            }
            Resource::Function(..) => ("FunctionResource", &[Alter, Drop, Authorize, Execute]),
            Resource::AllMbeans | Resource::Mbean(_) | Resource::Mbeans(_) => {
                ("JMXResource", &[Authorize, Describe, Execute, Modify, Select])
            }
        };
        if permissions.iter().any(|permission| applicable.contains(permission)) {
            return Ok(());
        }
        Err(self.refused(format!("Resource type {class} does not support any of the requested permissions")))
    }
}

fn is_string(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::StringLiteral | TokenKind::DollarString)
}
