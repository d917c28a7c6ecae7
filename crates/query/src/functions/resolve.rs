//! Which function a call means: overloads are told apart by how well the arguments fit.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use cql::ast::{ArithmeticOperator, NativeType, Term as Written};
use types::CqlType;

use super::{AggregateFunction, ScalarFunction, aggregate, arithmetic, cast, collection, native};
use crate::QueryError;
use crate::catalog::Home;
use crate::error::refuse;
use crate::scope::{Receiver, Scope};
use crate::terms::{self, Assignable, Term};

/// A function that a call may mean.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Scalar(Arc<ScalarFunction>),
    Aggregate(Arc<AggregateFunction>),
}

impl Found {
    pub(crate) fn name(&self) -> &str {
        match self {
            Found::Scalar(function) => &function.name,
            Found::Aggregate(function) => &function.name,
        }
    }

    pub(crate) fn arguments(&self) -> &[CqlType] {
        match self {
            Found::Scalar(function) => &function.arguments,
            Found::Aggregate(function) => function.argument.as_slice(),
        }
    }

    pub(crate) fn returns(&self) -> &CqlType {
        match self {
            Found::Scalar(function) => &function.returns,
            Found::Aggregate(function) => &function.returns,
        }
    }

    fn signature(&self) -> String {
        match self {
            Found::Scalar(function) => function.signature(),
            Found::Aggregate(function) => function.signature(),
        }
    }
}

/// An argument of a call, as far as it tells overloads apart.
#[derive(Clone, Debug)]
pub(crate) enum Argument<'a> {
    /// A term, whose type depends on what is asked of it.
    Term(&'a Written),
    /// Something of a known type, and its text for messages.
    Typed(CqlType, String),
}

/// The beginning of it, if it is long: overloads are tried again and again, and each that does not fit says why.
impl std::fmt::Display for Argument<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = Beginning { text: String::new(), bytes_left: SHOWN_BYTES_MAX };
        let is_whole = match self {
            Argument::Term(term) => write!(shown, "{term}").is_ok(),
            Argument::Typed(_, text) => shown.write_str(text).is_ok(),
        };
        f.write_str(&shown.text)?;
        f.write_str(if is_whole { "" } else { "…" })
    }
}

/// As much of an argument as a message shows, in bytes.
const SHOWN_BYTES_MAX: usize = 1 << 10;

/// Takes text until it is enough.
struct Beginning {
    text: String,
    bytes_left: usize,
}

impl std::fmt::Write for Beginning {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = text.floor_char_boundary(self.bytes_left);
        self.text.push_str(&text[..end]);
        self.bytes_left -= end;
        if end < text.len() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

impl Argument<'_> {
    fn test(&self, expected: &CqlType, scope: &Scope<'_>) -> Assignable {
        match self {
            Argument::Term(term) => terms::test_assignment(term, expected, scope),
            Argument::Typed(given, _) => terms::test_type(given, expected),
        }
    }

    /// Its type if that is known without asking.
    fn known_type(&self, scope: &Scope<'_>) -> Option<CqlType> {
        match self {
            Argument::Typed(given, _) => Some(given.clone()),
            Argument::Term(Written::Literal(literal)) => terms::preferred_type(literal),
            Argument::Term(Written::TypeHint(name, _)) => {
                crate::ddl::resolve_type(name, &scope.keyspace, scope.catalog).ok()
            }
            Argument::Term(
                term @ (Written::Function(_) | Written::Cast(..) | Written::Binary(..) | Written::Negate(_)),
            ) => call_type(term, None, scope),
            Argument::Term(_) => None,
        }
    }

    fn is_marker(&self) -> bool {
        matches!(self, Argument::Term(Written::Marker(_)))
    }
}

/// Which function a call is to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'a> {
    /// By its folded name.
    Named(&'a str),
    Operator(ArithmeticOperator),
    Negation,
    Cast(NativeType),
}

/// The function that a call with these arguments means; `None` if there is none of that name.
///
/// `table` is whose `token` is meant.
///
/// # Errors
/// No overload fits, or several.
pub(crate) fn find(
    call: Call<'_>,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
    table: Option<(&str, &str)>,
    scope: &Scope<'_>,
) -> Result<Option<Found>, QueryError> {
    scope.calls.count_find()?;
    let candidates = candidates(call, arguments, table, scope)?;
    match &*candidates {
        [] => Ok(None),
        [single] => {
            check_arguments(single, arguments, scope)?;
            Ok(Some(single.clone()))
        }
        several => best(call, several, arguments, receiver, scope).map(Some),
    }
}

fn scalars(functions: Vec<ScalarFunction>) -> Arc<[Found]> {
    functions.into_iter().map(|function| Found::Scalar(function.into())).collect()
}

/// What `Call::Operator` and `Call::Negation` may mean: dozens of functions, made once.
struct Operations {
    operators: [(ArithmeticOperator, Arc<[Found]>); 5],
    negations: Arc<[Found]>,
}

static OPERATIONS: LazyLock<Operations> = LazyLock::new(|| Operations {
    operators: ArithmeticOperator::ALL.map(|operator| (operator, scalars(arithmetic::overloads(operator)))),
    negations: scalars(arithmetic::negations()),
});

fn operations(operator: ArithmeticOperator) -> Arc<[Found]> {
    let found = OPERATIONS.operators.iter().find(|(of, _)| *of == operator);
    found.map_or_else(|| Arc::from([]), |(_, overloads)| Arc::clone(overloads))
}

fn candidates(
    call: Call<'_>,
    arguments: &[Argument<'_>],
    table: Option<(&str, &str)>,
    scope: &Scope<'_>,
) -> Result<Arc<[Found]>, QueryError> {
    let name = match call {
        Call::Operator(operator) => return Ok(operations(operator)),
        Call::Negation => return Ok(Arc::clone(&OPERATIONS.negations)),
        Call::Cast(to) => {
            let to = if to == NativeType::Varchar { NativeType::Text } else { to };
            return Ok(scalars(cast::named(&format!("cast_as_{}", to.name()))));
        }
        Call::Named(name) => name,
    };
    let first = arguments.first().and_then(|argument| argument.known_type(scope));
    if let Some(found) = aggregate::named(name, first.as_ref()) {
        return Ok(found.into_iter().map(|f| Found::Aggregate(f.into())).collect());
    }
    match name {
        "token" => {
            let Some((keyspace, table)) = table else { return Ok(Arc::from([])) };
            let (table, _home): (_, Home) = scope.catalog.table(keyspace, table)?;
            Ok(scalars(vec![native::token(&table)]))
        }
        "tojson" | "to_json" => match first {
            Some(of) => Ok(scalars(vec![native::to_json(name, of)])),
            None => Ok(Arc::from([])),
        },
        _ => {
            let mut found = native::named(name);
            found.extend(cast::named(name));
            if let Some(wanted) = collection::wanted_argument(name) {
                let Some(of) = first else {
                    refuse!(
                        "Function system.{name} requires {wanted} argument, but found argument of unknown type"
                    );
                };
                match collection::named(name, &of) {
                    Some(function) => found.push(function),
                    None => refuse!(
                        "Function system.{name} requires {wanted} argument, but found argument {} of type {of}",
                        arguments[0]
                    ),
                }
            }
            Ok(scalars(found))
        }
    }
}

fn check_arguments(
    function: &Found,
    arguments: &[Argument<'_>],
    scope: &Scope<'_>,
) -> Result<(), QueryError> {
    let expected = function.arguments();
    if expected.len() != arguments.len() {
        refuse!(
            "Invalid number of arguments in call to function {}: {} required but {} provided",
            function.name(),
            expected.len(),
            arguments.len()
        );
    }
    for (index, (argument, of)) in arguments.iter().zip(expected).enumerate() {
        if !argument.test(of, scope).is_assignable() {
            refuse!(
                "Type error: {argument} cannot be passed as argument {index} of function {} of type {of}",
                function.name()
            );
        }
    }
    Ok(())
}

fn best(
    call: Call<'_>,
    candidates: &[Found],
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
    scope: &Scope<'_>,
) -> Result<Found, QueryError> {
    let fits_receiver = |candidate: &Found| {
        receiver.is_none_or(|of| terms::test_type(candidate.returns(), of).is_assignable())
    };
    // What the arguments are by themselves goes before what they could be taken for: 100 + 100 could be a tinyint.
    let known: Option<Vec<CqlType>> = arguments.iter().map(|argument| argument.known_type(scope)).collect();
    if let Some(known) = known
        && let Some(found) =
            candidates.iter().find(|found| found.arguments() == known && fits_receiver(found))
    {
        return Ok(found.clone());
    }
    let mut weak = Vec::new();
    // Dozens of overloads take the same few types.
    let mut tested: Vec<HashMap<&CqlType, Assignable>> = vec![HashMap::new(); arguments.len()];
    for candidate in candidates {
        if !fits_receiver(candidate) || candidate.arguments().len() != arguments.len() {
            continue;
        }
        let tests = arguments.iter().zip(candidate.arguments()).zip(&mut tested);
        match Assignable::all(
            tests.map(|((a, of), tested)| *tested.entry(of).or_insert_with(|| a.test(of, scope))),
        ) {
            Assignable::Exactly => return Ok(candidate.clone()),
            Assignable::Weakly => weak.push(candidate),
            Assignable::No => {}
        }
    }
    let list = |functions: &[&Found]| functions.iter().map(|f| f.signature()).collect::<Vec<_>>().join(", ");
    match (weak.as_slice(), call) {
        ([single], _) => Ok((*single).clone()),
        ([], Call::Operator(operator)) => refuse!(
            "the '{}' operation is not supported between {} and {}",
            arithmetic::symbol(operator),
            arguments[0],
            arguments[1]
        ),
        ([], _) => {
            let all: Vec<&Found> = candidates.iter().collect();
            refuse!(
                "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
                shown_name(call, candidates),
                list(&all)
            )
        }
        (several, Call::Operator(operator)) => {
            if let Some(of) = receiver
                && !arguments.iter().any(Argument::is_marker)
                && let Some(same) = several.iter().find(|f| f.arguments() == [of.clone(), of.clone()])
            {
                return Ok((*same).clone());
            }
            refuse!(
                "Ambiguous '{}' operation with args {} and {}: use type hint to disambiguate, example '(int) ?'",
                arithmetic::symbol(operator),
                arguments[0],
                arguments[1]
            )
        }
        (_, Call::Negation) => refuse!("Ambiguous negation: use type casts to disambiguate"),
        (several, _) => refuse!(
            "Ambiguous call to function {} (can be matched by following signatures: {}): use type casts to disambiguate",
            shown_name(call, candidates),
            list(several)
        ),
    }
}

/// The name of what was called: as it was written, or what a cast stands for.
fn shown_name<'a>(call: Call<'a>, candidates: &'a [Found]) -> &'a str {
    match call {
        Call::Named(name) => name,
        _ => candidates[0].name(),
    }
}

/// The call that a term is, and its arguments.
fn call_of(term: &Written) -> Option<(Call<'_>, Vec<&Written>)> {
    Some(match term {
        Written::Function(call) => (Call::Named(&call.name.name), call.arguments.iter().collect()),
        Written::Cast(inner, to) => (Call::Cast(*to), vec![&**inner]),
        Written::Binary(left, operator, right) => (Call::Operator(*operator), vec![&**left, &**right]),
        Written::Negate(inner) => (Call::Negation, vec![&**inner]),
        _ => return None,
    })
}

/// The type a call returns; `None` if there is no such function, or not one that fits.
pub(crate) fn call_type(term: &Written, receiver: Option<&CqlType>, scope: &Scope<'_>) -> Option<CqlType> {
    let (call, arguments) = call_of(term)?;
    if matches!(call, Call::Named("token")) {
        return Some(CqlType::Bigint);
    }
    scope.calls.returned(term, receiver, || {
        let arguments: Vec<Argument<'_>> = arguments.into_iter().map(Argument::Term).collect();
        find(call, &arguments, receiver, None, scope).ok()?.map(|found| found.returns().clone())
    })
}

/// Plans a term that is a call.
///
/// # Errors
/// There is no such function, it does not fit its arguments or the receiver, or it aggregates.
pub(crate) fn plan_call(
    term: &Written,
    receiver: &Receiver,
    scope: &mut Scope<'_>,
) -> Result<Term, QueryError> {
    scope.calls.enter();
    let planned = plan_entered_call(term, receiver, scope);
    scope.calls.leave();
    planned
}

fn plan_entered_call(term: &Written, receiver: &Receiver, scope: &mut Scope<'_>) -> Result<Term, QueryError> {
    let Some((call, written)) = call_of(term) else {
        refuse!("{term} is not a function call");
    };
    let arguments: Vec<Argument<'_>> = written.iter().map(|term| Argument::Term(term)).collect();
    let table = Some((&*receiver.keyspace, &*receiver.table));
    let found = find(call, &arguments, Some(&receiver.cql_type), table, scope)?;
    let function = match found {
        Some(Found::Scalar(function)) => function,
        Some(Found::Aggregate(_)) => refuse!("Aggregation function are not supported in the where clause"),
        None => match term {
            Written::Function(call) => refuse!("Unknown function {} called", qualified(&call.name)),
            _ => refuse!("{term} can not be computed"),
        },
    };
    if !terms::test_type(&function.returns, &receiver.cql_type).is_assignable() {
        let what = match call {
            Call::Operator(operator) => format!("operation {}", arithmetic::symbol(operator)),
            _ => format!("function {}", function.name),
        };
        refuse!(
            "Type error: cannot assign result of {what} (type {}) to {} (type {})",
            function.returns,
            receiver.name,
            receiver.cql_type
        );
    }
    let mut planned = Vec::with_capacity(written.len());
    for (index, (argument, of)) in written.iter().zip(&function.arguments).enumerate() {
        let part = receiver.named(&format!("arg{index}({})", function.bare_name()), of.clone());
        planned.push(terms::plan(argument, &part, scope)?);
    }
    Ok(Term::Function(function, planned))
}

/// A function's name as written.
pub(crate) fn qualified(name: &cql::ast::QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{}.{}", keyspace.as_str(), name.name.as_str()),
        None => name.name.as_str().to_owned(),
    }
}
