//! Tuples, collections and user types put together in a selection.

use cql::ast::Selector as Written;
use types::CqlType;

use super::{Planned, Selectors, can_not_infer};
use crate::scope::Scope;
use crate::select::selector::Selector;
use crate::{QueryError, terms};

impl Selectors<'_> {
    pub(super) fn plan_tuple(
        &mut self,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        if let [single] = parts
            && !matches!(expected, Some(CqlType::Tuple(_)))
        {
            let planned = self.plan(single, expected, scope)?;
            return Ok(Planned { name: format!("({})", planned.name), ..planned });
        }
        let types = match expected {
            Some(CqlType::Tuple(types)) => types.to_vec(),
            _ => Vec::new(),
        };
        let mut planned = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            planned.push(self.plan(part, types.get(index), scope)?);
        }
        let cql_type = CqlType::Tuple(planned.iter().map(|part| part.cql_type.freeze()).collect());
        let name = format!("({})", join(&planned));
        let selector = Selector::Tuple(planned.into_iter().map(|part| part.selector).collect());
        Ok(Planned { selector, cql_type, name })
    }

    /// Plans parts that must all be of one type; that type.
    fn plan_parts(
        &mut self,
        whole: &Written,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<(Vec<Planned>, CqlType), QueryError> {
        // The first that has a type of its own says what all are. It is planned once: lists in lists in lists would
        // else take twice as long for each.
        let first = match expected {
            Some(_) => None,
            None => parts.iter().position(|part| !self.is_term(part)),
        };
        let mut known = first.map(|index| self.plan(&parts[index], None, scope)).transpose()?;
        let of = expected.cloned().or_else(|| known.as_ref().map(|planned| planned.cql_type.clone()));
        let Some(of) = of else { return Err(can_not_infer(whole)) };
        let mut planned = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            planned.push(match known.take_if(|_| Some(index) == first) {
                Some(known) => known,
                None => self.plan(part, Some(&of), scope)?,
            });
        }
        Ok((planned, of))
    }

    pub(super) fn plan_list(
        &mut self,
        whole: &Written,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let wanted = match expected {
            Some(CqlType::List { element, .. } | CqlType::Vector { element, .. }) => Some(&**element),
            _ => None,
        };
        let (planned, of) = self.plan_parts(whole, parts, wanted, scope)?;
        let name = format!("[{}]", join(&planned));
        let selectors: Vec<Selector> = planned.into_iter().map(|part| part.selector).collect();
        Ok(match expected {
            Some(vector @ CqlType::Vector { .. }) => {
                Planned { selector: Selector::Vector(of, selectors), cql_type: vector.clone(), name }
            }
            _ => {
                let cql_type = CqlType::List { element: of.into(), frozen: false };
                Planned { selector: Selector::List(selectors), cql_type, name }
            }
        })
    }

    pub(super) fn plan_set(
        &mut self,
        whole: &Written,
        parts: &[Written],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        let wanted = match expected {
            Some(CqlType::Set { element, .. }) => Some(&**element),
            _ => None,
        };
        let (planned, of) = self.plan_parts(whole, parts, wanted, scope)?;
        let name = format!("{{{}}}", join(&planned));
        let selectors = planned.into_iter().map(|part| part.selector).collect();
        let cql_type = CqlType::Set { element: of.clone().into(), frozen: false };
        Ok(Planned { selector: Selector::Set(of, selectors), cql_type, name })
    }

    pub(super) fn plan_map(
        &mut self,
        whole: &Written,
        entries: &[(Written, Written)],
        expected: Option<&CqlType>,
        scope: &mut Scope<'_>,
    ) -> Result<Planned, QueryError> {
        if let Some(CqlType::UserDefined { definition, .. }) = expected {
            let mut fields = Vec::with_capacity(definition.fields.len());
            for (field, of) in &definition.fields {
                let given =
                    entries.iter().find(|(key, _)| matches!(key, Written::Column(name) if **name == **field));
                fields.push(match given {
                    Some((_, value)) => self.plan(value, Some(of), scope)?.selector,
                    None => Selector::Term(terms::Term::Null),
                });
            }
            let cql_type = CqlType::UserDefined { definition: definition.clone(), frozen: true };
            return Ok(Planned { selector: Selector::Tuple(fields), cql_type, name: whole.to_string() });
        }
        let Some(CqlType::Map { key, value, .. }) = expected else { return Err(can_not_infer(whole)) };
        let mut planned = Vec::with_capacity(entries.len());
        let mut names = Vec::with_capacity(entries.len());
        for (k, v) in entries {
            let (k, v) = (self.plan(k, Some(key), scope)?, self.plan(v, Some(value), scope)?);
            names.push(format!("{}: {}", k.name, v.name));
            planned.push((k.selector, v.selector));
        }
        let cql_type = CqlType::Map { key: key.clone(), value: value.clone(), frozen: false };
        let name = format!("{{{}}}", names.join(", "));
        Ok(Planned { selector: Selector::Map((**key).clone(), planned), cql_type, name })
    }
}

fn join(parts: &[Planned]) -> String {
    parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(", ")
}
