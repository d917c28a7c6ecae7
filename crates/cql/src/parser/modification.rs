//! INSERT, UPDATE and DELETE.

use super::Parser;
use super::assigned::AssignedColumns;
use super::failure::Outcome;
use super::name::is_column_name;
use crate::ast::{
    Assignment, AssignmentAction, ColumnPart, Delete, DeletedColumn, Insert, InsertSource, JsonDefault,
    JsonValue, Literal, LiteralKind, Term, Update, Using,
};
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// `INSERT INTO …`
    pub(super) fn insert(&mut self) -> Outcome<Insert> {
        self.expect_all(&[TokenKind::Insert, TokenKind::Into])?;
        let table = self.table_name()?.into();
        let source = match self.kind() {
            TokenKind::OpenParenthesis => self.insert_values()?,
            TokenKind::Json => self.insert_json()?,
            _ => return Err(self.no_viable()),
        };
        let if_not_exists = self.if_not_exists()?;
        let using = self.using_clause()?;
        Ok(Insert { table, source, if_not_exists, using })
    }

    fn insert_values(&mut self) -> Outcome<InsertSource> {
        self.advance();
        let columns = self.separated(TokenKind::Comma, Self::column_name)?;
        self.expect_all(&[TokenKind::CloseParenthesis, TokenKind::Values, TokenKind::OpenParenthesis])?;
        let mut values = Vec::with_capacity(columns.len());
        values.push(self.term()?);
        while self.accept(TokenKind::Comma) {
            values.push(self.term()?);
        }
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(InsertSource::Values { columns: columns.into(), values })
    }

    fn insert_json(&mut self) -> Outcome<InsertSource> {
        self.advance();
        let value = match self.kind() {
            TokenKind::QuestionMark | TokenKind::Colon => JsonValue::Marker(self.marker()?),
            _ if self.is_string() => JsonValue::Literal(self.string()?),
            _ => return Err(self.no_viable()),
        };
        let mut default = JsonDefault::Null;
        if self.accept(TokenKind::Default) {
            if self.accept(TokenKind::Unset) {
                default = JsonDefault::Unset;
            } else if !self.accept(TokenKind::Null) {
                return Err(self.no_viable());
            }
        }
        Ok(InsertSource::Json { value, default })
    }

    /// `USING TIMESTAMP … AND TTL …`, or nothing. Of several the last one counts.
    pub(super) fn using_clause(&mut self) -> Outcome<Using> {
        let mut using = Using::default();
        if !self.accept(TokenKind::Using) {
            return Ok(using);
        }
        loop {
            match self.kind() {
                TokenKind::Timestamp => {
                    self.advance();
                    using.timestamp = Some(self.integer_value()?);
                }
                TokenKind::Ttl => {
                    self.advance();
                    using.time_to_live = Some(self.integer_value()?);
                }
                _ => return Err(self.no_viable()),
            }
            if !self.accept(TokenKind::And) {
                return Ok(using);
            }
        }
    }

    /// `UPDATE … SET … WHERE …`
    pub(super) fn update(&mut self) -> Outcome<Update> {
        self.expect(TokenKind::Update)?;
        let table = self.table_name()?;
        let using = self.using_clause()?;
        self.expect(TokenKind::Set)?;
        let assignments = self.assignments()?;
        self.expect(TokenKind::Where)?;
        let relations = self.relations()?;
        let condition = self.condition()?;
        Ok(Update { table, using, assignments, relations, condition })
    }

    /// `a = 1, b = 2, …`. A column is set once, or several of its parts are.
    fn assignments(&mut self) -> Outcome<Vec<Assignment>> {
        let (mut assignments, mut assigned) = (Vec::with_capacity(2), AssignedColumns::default());
        loop {
            let assignment = self.assignment()?;
            if !assigned.is_compatible(&assignments, &assignment) {
                let column = assignment.column.as_str();
                return Err(self.refused(format!("Multiple incompatible setting of column {column}")));
            }
            assignments.push(assignment);
            if !self.accept(TokenKind::Comma) {
                return Ok(assignments);
            }
        }
    }

    fn assignment(&mut self) -> Outcome<Assignment> {
        let column = self.column_name()?;
        let action = match self.kind() {
            TokenKind::Equal => {
                self.advance();
                self.assigned_value(&column)?
            }
            TokenKind::PlusEqual => {
                self.advance();
                AssignmentAction::Add(self.term()?)
            }
            TokenKind::MinusEqual => {
                self.advance();
                AssignmentAction::Subtract(self.term()?)
            }
            TokenKind::OpenBracket => {
                self.advance();
                let element = self.term()?;
                self.expect_all(&[TokenKind::CloseBracket, TokenKind::Equal])?;
                AssignmentAction::SetElement(element, self.term()?)
            }
            TokenKind::Dot => {
                self.advance();
                let field = self.name()?;
                self.expect(TokenKind::Equal)?;
                AssignmentAction::SetField(field, self.term()?)
            }
            _ => return Err(self.no_viable()),
        };
        Ok(Assignment { column, action })
    }

    /// What stands right of `column =`: a value, `column + value`, `column - value`,
    /// `column -5` (the minus belongs to the number) or `value + column`.
    fn assigned_value(&mut self, column: &str) -> Outcome<AssignmentAction> {
        if is_column_name(self.kind()) {
            match self.kind_at(1) {
                TokenKind::Plus | TokenKind::Minus => {
                    let operand = self.take_name();
                    let is_addition = self.kind() == TokenKind::Plus;
                    self.advance();
                    let value = self.term()?;
                    let sign = if is_addition { '+' } else { '-' };
                    self.check_operand(column, &operand, || format!("X = X {sign}<value>"))?;
                    let action = if is_addition { AssignmentAction::Add } else { AssignmentAction::Subtract };
                    return Ok(action(value));
                }
                TokenKind::Integer => {
                    let operand = self.take_name();
                    let digits = self.token_text();
                    self.advance();
                    let sign = if digits.starts_with('-') { '-' } else { '+' };
                    self.check_operand(column, &operand, || format!("X = X {sign} <value>"))?;
                    return Ok(AssignmentAction::Add(Term::Literal(Literal::new(
                        LiteralKind::Integer,
                        digits,
                    ))));
                }
                TokenKind::OpenParenthesis | TokenKind::Dot => {}
                _ => return Err(self.no_viable_ahead(1)),
            }
        }
        let value = self.term()?;
        if !self.accept(TokenKind::Plus) {
            return Ok(AssignmentAction::Set(value));
        }
        let operand = self.column_name()?;
        self.check_operand(column, &operand, || "X = <value> + X".to_owned())?;
        Ok(AssignmentAction::Prepend(value))
    }

    fn check_operand(&self, column: &str, operand: &str, form: impl FnOnce() -> String) -> Outcome<()> {
        if column == operand {
            return Ok(());
        }
        Err(self.refused(format!("Only expressions of the form {} are supported.", form())))
    }

    /// `DELETE … FROM … WHERE …`
    pub(super) fn delete(&mut self) -> Outcome<Delete> {
        self.expect(TokenKind::Delete)?;
        let columns = if is_column_name(self.kind()) {
            self.separated(TokenKind::Comma, Self::deleted_column)?
        } else {
            Vec::new()
        };
        self.expect(TokenKind::From)?;
        let table = self.table_name()?;
        let mut using = Using::default();
        if self.accept(TokenKind::Using) {
            self.expect(TokenKind::Timestamp)?;
            using.timestamp = Some(self.integer_value()?);
        }
        self.expect(TokenKind::Where)?;
        let relations = self.relations()?;
        let condition = self.condition()?;
        Ok(Delete { columns, table, using, relations, condition })
    }

    fn deleted_column(&mut self) -> Outcome<DeletedColumn> {
        if is_column_name(self.kind())
            && !matches!(
                self.kind_at(1),
                TokenKind::OpenBracket | TokenKind::Dot | TokenKind::Comma | TokenKind::From
            )
        {
            return Err(self.no_viable_ahead(1));
        }
        let column = self.column_name()?;
        Ok(DeletedColumn { column, part: self.column_part()? })
    }

    /// `[element]`, `.field`, or nothing: the whole column.
    pub(super) fn column_part(&mut self) -> Outcome<ColumnPart> {
        match self.kind() {
            TokenKind::OpenBracket => {
                self.advance();
                let element = self.term()?;
                self.expect(TokenKind::CloseBracket)?;
                Ok(ColumnPart::Element(element))
            }
            TokenKind::Dot => {
                self.advance();
                Ok(ColumnPart::Field(self.name()?))
            }
            _ => Ok(ColumnPart::Whole),
        }
    }
}
