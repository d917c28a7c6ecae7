//! Roles, users and identities.

use super::Parser;
use super::failure::Outcome;
use crate::ast::{
    AddIdentity, DropRole, ListRoles, RoleDefinition, RoleName, RoleOption, StatementKind, UserDefinition,
};
use crate::lexer::TokenKind;
use crate::text::Text;

impl Parser<'_> {
    /// A role, as an identifier or a string.
    pub(super) fn role_name(&mut self) -> Outcome<RoleName> {
        if self.is_string() {
            return Ok(RoleName(self.string()?));
        }
        if self.kind() == TokenKind::QuestionMark {
            return Err(self.refused("Bind variables cannot be used for role names".to_owned()));
        }
        Ok(RoleName(Text::new(&self.name()?)))
    }

    /// A user or an identity, as a word that keeps its case or as a string.
    fn plain_role_name(&mut self, refusal: &str) -> Outcome<RoleName> {
        match self.kind() {
            TokenKind::Identifier => {
                let name = RoleName(Text::new(self.token_text()));
                self.advance();
                Ok(name)
            }
            TokenKind::QuotedName => Err(self.refused(refusal.to_owned())),
            _ if self.is_string() => Ok(RoleName(self.string()?)),
            _ => Err(self.no_viable()),
        }
    }

    fn user_name(&mut self) -> Outcome<RoleName> {
        self.plain_role_name(
            "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE",
        )
    }

    fn identity(&mut self) -> Outcome<RoleName> {
        self.plain_role_name("Quoted strings are are not supported for identity")
    }

    /// Behind `CREATE ROLE [IF NOT EXISTS]` and `ALTER ROLE [IF EXISTS]`.
    pub(super) fn role_definition(&mut self, if_clause: bool) -> Outcome<RoleDefinition> {
        let name = self.role_name()?;
        let mut options: Vec<RoleOption> = Vec::new();
        if self.accept(TokenKind::With) {
            loop {
                let option = self.role_option()?;
                self.check_role_option(&options, &option)?;
                options.push(option);
                if !self.accept(TokenKind::And) {
                    break;
                }
            }
        }
        let has = |wanted: fn(&RoleOption) -> bool| options.iter().any(wanted);
        if has(|option| matches!(option, RoleOption::Password(_)))
            && has(|option| matches!(option, RoleOption::HashedPassword(_)))
        {
            let message = "Options 'password' and 'hashed password' are mutually exclusive";
            return Err(self.refused(message.to_owned()));
        }
        Ok(RoleDefinition { if_clause, name, options })
    }

    fn role_option(&mut self) -> Outcome<RoleOption> {
        let option = self.kind();
        match option {
            TokenKind::Password | TokenKind::Hashed => {
                self.advance();
                if option == TokenKind::Hashed {
                    self.expect(TokenKind::Password)?;
                }
                self.expect(TokenKind::Equal)?;
                let text = self.string()?;
                Ok(if option == TokenKind::Hashed {
                    RoleOption::HashedPassword(text)
                } else {
                    RoleOption::Password(text)
                })
            }
            TokenKind::Options => {
                self.advance();
                self.expect(TokenKind::Equal)?;
                Ok(RoleOption::Options(self.property_map()?))
            }
            TokenKind::Superuser | TokenKind::Login => {
                self.advance();
                self.expect(TokenKind::Equal)?;
                let is_set = self.boolean()?;
                Ok(if option == TokenKind::Login {
                    RoleOption::Login(is_set)
                } else {
                    RoleOption::Superuser(is_set)
                })
            }
            TokenKind::Access => self.access_option(),
            _ => Err(self.no_viable()),
        }
    }

    /// `ACCESS TO [ALL] DATACENTERS …` or `ACCESS FROM [ALL] CIDRS …`
    fn access_option(&mut self) -> Outcome<RoleOption> {
        if !matches!(self.kind_at(1), TokenKind::To | TokenKind::From) {
            return Err(self.no_viable_ahead(1));
        }
        self.advance();
        let (all, some, what) = match self.kind() {
            TokenKind::To => (
                RoleOption::AllDatacenters,
                RoleOption::Datacenters as fn(Vec<Text>) -> _,
                TokenKind::Datacenters,
            ),
            TokenKind::From => {
                (RoleOption::AllCidrs, RoleOption::Cidrs as fn(Vec<Text>) -> _, TokenKind::Cidrs)
            }
            _ => return Err(self.no_viable()),
        };
        self.advance();
        if self.accept(TokenKind::All) {
            self.expect(what)?;
            return Ok(all);
        }
        self.expect_all(&[what, TokenKind::OpenBrace])?;
        let names = self.separated(TokenKind::Comma, Self::string)?;
        self.expect(TokenKind::CloseBrace)?;
        Ok(some(names))
    }

    fn check_role_option(&self, earlier: &[RoleOption], new: &RoleOption) -> Outcome<()> {
        let name = match new {
            RoleOption::Password(_) => "PASSWORD",
            RoleOption::HashedPassword(_) => "HASHED_PASSWORD",
            RoleOption::Options(_) => "OPTIONS",
            RoleOption::Superuser(_) => "SUPERUSER",
            RoleOption::Login(_) => "LOGIN",
            _ => return Ok(()),
        };
        let kind = std::mem::discriminant(new);
        if earlier.iter().all(|option| std::mem::discriminant(option) != kind) {
            return Ok(());
        }
        Err(self.refused(format!("Multiple definition for property '{name}'")))
    }

    /// Behind `CREATE USER [IF NOT EXISTS]` and `ALTER USER [IF EXISTS]`.
    pub(super) fn user_definition(&mut self, if_clause: bool) -> Outcome<UserDefinition> {
        let name = self.user_name()?;
        let mut password = None;
        if self.accept(TokenKind::With) {
            let is_hashed = self.accept(TokenKind::Hashed);
            if !is_hashed && self.kind() != TokenKind::Password {
                return Err(self.no_viable());
            }
            self.expect(TokenKind::Password)?;
            let text = self.string()?;
            password =
                Some(if is_hashed { RoleOption::HashedPassword(text) } else { RoleOption::Password(text) });
        }
        let superuser = match self.kind() {
            TokenKind::Superuser => Some(true),
            TokenKind::Nosuperuser => Some(false),
            _ => None,
        };
        if superuser.is_some() {
            self.advance();
        }
        Ok(UserDefinition { if_clause, name, password, superuser })
    }

    /// Behind `DROP ROLE`.
    pub(super) fn drop_role(&mut self) -> Outcome<DropRole> {
        Ok(DropRole { if_exists: self.if_exists()?, name: self.role_name()? })
    }

    /// Behind `DROP USER`.
    pub(super) fn drop_user(&mut self) -> Outcome<DropRole> {
        Ok(DropRole { if_exists: self.if_exists()?, name: self.user_name()? })
    }

    /// Behind `DROP IDENTITY`.
    pub(super) fn drop_identity(&mut self) -> Outcome<DropRole> {
        Ok(DropRole { if_exists: self.if_exists()?, name: self.identity()? })
    }

    /// `ADD IDENTITY 'x' TO ROLE y`
    pub(super) fn add_identity(&mut self) -> Outcome<AddIdentity> {
        self.expect_all(&[TokenKind::Add, TokenKind::Identity])?;
        let if_not_exists = self.if_not_exists()?;
        let identity = self.identity()?;
        self.expect_all(&[TokenKind::To, TokenKind::Role])?;
        Ok(AddIdentity { if_not_exists, identity, role: self.identity()? })
    }

    /// `LIST ROLES`, `LIST USERS` or `LIST permissions`
    pub(super) fn list(&mut self) -> Outcome<StatementKind> {
        match self.kind_at(1) {
            TokenKind::Roles => {
                self.advance();
                self.advance();
                let of = if self.accept(TokenKind::Of) { Some(self.role_name()?) } else { None };
                let is_no_recursive = self.accept(TokenKind::Norecursive);
                Ok(StatementKind::ListRoles(ListRoles { of, is_no_recursive }))
            }
            TokenKind::Users => {
                self.advance();
                self.advance();
                Ok(StatementKind::ListUsers)
            }
            TokenKind::All
            | TokenKind::Create
            | TokenKind::Alter
            | TokenKind::Drop
            | TokenKind::Select
            | TokenKind::Modify
            | TokenKind::Authorize
            | TokenKind::Describe
            | TokenKind::Execute
            | TokenKind::Unmask
            | TokenKind::SelectMasked => {
                self.advance();
                Ok(StatementKind::ListPermissions(self.list_permissions()?))
            }
            _ => Err(self.no_viable_ahead(1)),
        }
    }
}
