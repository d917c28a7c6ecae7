//! Tests of the parser: the trees of statements, and the limits. That wrong text is refused with
//! the right words is tested in `tests/refusals.rs`.

use super::{NESTING_MAX, parse_statement, parse_type};
use crate::ast::*;

fn kind(text: &str) -> StatementKind {
    parse_statement(text).unwrap_or_else(|error| panic!("{text}: {error}")).kind
}

fn select(text: &str) -> Select {
    match kind(text) {
        StatementKind::Select(select) => select,
        other => panic!("{text} is {}", other.label()),
    }
}

fn selector(text: &str) -> Selector {
    match select(&format!("SELECT {text} FROM t")).selection {
        Selection::Items(mut items) if items.len() == 1 => items.remove(0).selector,
        other => panic!("{text} is {other}"),
    }
}

fn term(text: &str) -> Term {
    match kind(&format!("INSERT INTO t (a) VALUES ({text})")) {
        StatementKind::Insert(Insert { source: InsertSource::Values { mut values, .. }, .. }) => {
            values.remove(0)
        }
        other => panic!("{text} is {}", other.label()),
    }
}

fn integer(digits: &str) -> Term {
    Term::Literal(Literal::new(LiteralKind::Integer, digits))
}

fn column(name: &str) -> Selector {
    Selector::Column(Ident::new(name))
}

#[test]
fn names_fold_unless_quoted() {
    let select = select("SELECT Abc, \"Abc\", \"a\"\"b\" FROM Ks.\"T\"");
    let names: Vec<String> = match select.selection {
        Selection::Items(items) => items
            .into_iter()
            .map(|item| match item.selector {
                Selector::Column(name) => name.into(),
                other => panic!("{other}"),
            })
            .collect(),
        Selection::All => panic!("not all"),
    };
    assert_eq!(names, ["abc", "Abc", "a\"b"]);
    assert_eq!(select.table, QualifiedName { keyspace: Some("ks".into()), name: "T".into() });
}

#[test]
fn literals_keep_their_kind_and_text() {
    for (text, kind, kept) in [
        ("'it''s'", LiteralKind::String, "it's"),
        ("$$it's$$", LiteralKind::DollarString, "it's"),
        ("-012", LiteralKind::Integer, "-012"),
        ("1.50e+3", LiteralKind::Float, "1.50e+3"),
        ("nan", LiteralKind::Float, "NaN"),
        ("-INFINITY", LiteralKind::Float, "-Infinity"),
        ("TRUE", LiteralKind::Boolean, "TRUE"),
        ("0xCaFe", LiteralKind::Hex, "0xCaFe"),
        ("1h30m", LiteralKind::Duration, "1h30m"),
        ("5A1C395E-b41f-11e5-9f22-ba0be0483c18", LiteralKind::Uuid, "5A1C395E-b41f-11e5-9f22-ba0be0483c18"),
    ] {
        assert_eq!(term(text), Term::Literal(Literal::new(kind, kept)), "{text}");
    }
    assert_eq!(term("NULL"), Term::Null);
}

#[test]
fn braces_are_sets_maps_or_user_types() {
    assert_eq!(term("{}"), Term::Set(vec![]));
    assert_eq!(term("{1}"), Term::Set(vec![integer("1")]));
    assert_eq!(term("{1: 2}"), Term::Map(vec![(integer("1"), integer("2"))]));
    assert_eq!(term("{a: 2}"), Term::User(vec![("a".into(), integer("2"))]));
    assert!(matches!(term("{f(1): 2}"), Term::Map(_)));
    assert!(matches!(term("{:a: 2}"), Term::Map(_)));
}

#[test]
fn parentheses_are_tuples_or_type_hints() {
    assert_eq!(term("(1)"), Term::Tuple(vec![integer("1")]));
    let int = Box::new(CqlTypeName::Native(NativeType::Int));
    assert_eq!(term("(int)1"), Term::TypeHint(int.clone(), Box::new(integer("1"))));
    assert_eq!(selector("(int)a"), Selector::TypeHint(int, Box::new(column("a"))));
    assert_eq!(selector("(a)"), Selector::Tuple(vec![column("a")]));
    assert!(matches!(selector("(a) AS b"), Selector::Tuple(_)));
    assert!(matches!(selector("(my_type)a"), Selector::TypeHint(..)));
    assert!(matches!(term("('a')"), Term::Tuple(_)));
    assert!(matches!(term("(f(1), ks.g(2))"), Term::Tuple(_)));
    assert!(matches!(term("(list<frozen<map<int, text>>>)[1]"), Term::TypeHint(..)));
}

#[test]
fn products_bind_before_sums_and_both_to_the_left() {
    assert_eq!(
        term("1 + 2 * 3 - 4").to_string(),
        Term::Binary(
            Box::new(Term::Binary(
                Box::new(integer("1")),
                ArithmeticOperator::Add,
                Box::new(Term::Binary(
                    Box::new(integer("2")),
                    ArithmeticOperator::Multiply,
                    Box::new(integer("3"))
                ))
            )),
            ArithmeticOperator::Subtract,
            Box::new(integer("4"))
        )
        .to_string()
    );
    assert!(matches!(term("1 - 2 - 3"), Term::Binary(left, _, _) if matches!(*left, Term::Binary(..))));
}

#[test]
fn markers_are_counted_in_the_order_they_are_written() {
    let statement = parse_statement(
        "UPDATE t USING TTL ? AND TIMESTAMP :ts SET a = ?, m[:k] = :v WHERE k = ? AND (c, d) > (?, :d) IF e IN ?",
    )
    .unwrap();
    let names: Vec<Option<&str>> = statement.markers.iter().map(|marker| marker.name.as_deref()).collect();
    assert_eq!(names, [None, Some("ts"), None, Some("k"), Some("v"), None, None, Some("d"), None]);
    assert!(statement.markers.iter().enumerate().all(|(place, marker)| marker.index as usize == place));
}

#[test]
fn json_and_distinct_modify_only_before_a_selection() {
    for (text, is_json, is_distinct) in [
        ("SELECT json FROM t", false, false),
        ("SELECT json, a FROM t", false, false),
        ("SELECT json AS a FROM t", false, false),
        ("SELECT json.a FROM t", false, false),
        ("SELECT JSON * FROM t", true, false),
        ("SELECT JSON a FROM t", true, false),
        ("SELECT distinct FROM t", false, false),
        ("SELECT DISTINCT a, b FROM t", false, true),
        ("SELECT JSON DISTINCT a FROM t", true, true),
    ] {
        let select = select(text);
        assert_eq!((select.is_json, select.is_distinct), (is_json, is_distinct), "{text}");
    }
}

#[test]
fn selectors_have_parts() {
    assert_eq!(selector("a.b"), Selector::Field(Box::new(column("a")), "b".into()));
    assert_eq!(selector("a[1]"), Selector::Element(Box::new(column("a")), Box::new(integer("1"))));
    let slice = |from: Option<Term>, to: Option<Term>| {
        Selector::Slice(Box::new(column("a")), from.map(Box::new), to.map(Box::new))
    };
    assert_eq!(selector("a[1..2]"), slice(Some(integer("1")), Some(integer("2"))));
    assert_eq!(selector("a[1..]"), slice(Some(integer("1")), None));
    assert_eq!(selector("a[..2]"), slice(None, Some(integer("2"))));
    assert!(matches!(selector("a.b[1].c"), Selector::Field(..)));
    assert_eq!(selector("count(*)"), Selector::CountRows);
    assert_eq!(
        selector("ks.f(a)"),
        Selector::Function(
            QualifiedName { keyspace: Some("ks".into()), name: "f".into() },
            vec![column("a")]
        )
    );
    assert!(matches!(selector("ttl(m['a'])"), Selector::Metadata(CellMetadata::TimeToLive, _)));
    assert!(matches!(selector("cast(a as text)"), Selector::Cast(_, NativeType::Text)));
}

#[test]
fn relations_have_their_kinds() {
    let relations = select(
        "SELECT * FROM t WHERE a = 1 AND b IN (1) AND c IN ? AND token(k) > 5 AND (d, e) < (1, 2) AND \
         (f) IN ((1)) AND m['x'] = 2 AND s CONTAINS KEY 3 AND g IS NOT NULL AND h LIKE 'x' AND (i != 4) AND \
         expr(idx, 'q')",
    )
    .relations;
    assert!(matches!(&relations[0], Relation::Column { operator: Operator::Equal, .. }));
    assert!(matches!(&relations[1], Relation::In { values: InValues::Terms(_), .. }));
    assert!(matches!(&relations[2], Relation::In { values: InValues::Marker(_), .. }));
    assert!(matches!(&relations[3], Relation::Token { operator: Operator::Greater, .. }));
    assert!(matches!(&relations[4], Relation::Tuple { columns, .. } if columns.len() == 2));
    assert!(matches!(&relations[5], Relation::TupleIn { .. }));
    assert!(matches!(&relations[6], Relation::MapEntry { .. }));
    assert!(matches!(&relations[7], Relation::Column { operator: Operator::ContainsKey, .. }));
    assert!(matches!(&relations[8], Relation::IsNotNull { .. }));
    assert!(matches!(&relations[9], Relation::Column { operator: Operator::Like, .. }));
    assert!(matches!(&relations[10], Relation::Column { operator: Operator::NotEqual, .. }));
    assert!(matches!(&relations[11], Relation::CustomIndex { .. }));
}

#[test]
fn assignments_have_their_kinds() {
    let StatementKind::Update(update) = kind(
        "UPDATE t SET a = 1, b = b + 2, c += 3, d = d - 4, e = e -5, f = [6] + f, g[0] = 7, h.i = 8, j = f(9) \
         WHERE k = 1",
    ) else {
        panic!("no update")
    };
    let actions: Vec<AssignmentAction> = update.assignments.into_iter().map(|one| one.action).collect();
    assert_eq!(actions[0], AssignmentAction::Set(integer("1")));
    assert_eq!(actions[1], AssignmentAction::Add(integer("2")));
    assert_eq!(actions[2], AssignmentAction::Add(integer("3")));
    assert_eq!(actions[3], AssignmentAction::Subtract(integer("4")));
    assert_eq!(actions[4], AssignmentAction::Add(integer("-5")));
    assert_eq!(actions[5], AssignmentAction::Prepend(Term::List(vec![integer("6")])));
    assert_eq!(actions[6], AssignmentAction::SetElement(integer("0"), integer("7")));
    assert_eq!(actions[7], AssignmentAction::SetField("i".into(), integer("8")));
    assert!(matches!(actions[8], AssignmentAction::Set(Term::Function(_))));
}

#[test]
fn tables_have_columns_keys_and_options() {
    let StatementKind::CreateTable(table) = kind(
        "CREATE TABLE ks.t (a int, b text STATIC, c frozen<list<int>>, PRIMARY KEY ((a, d), c)) \
         WITH CLUSTERING ORDER BY (c DESC) AND compaction = {'class': 'x', 'n': 4} AND read_repair = 'NONE' AND a = all",
    ) else {
        panic!("no table")
    };
    assert_eq!(table.columns.len(), 3);
    assert!(table.columns[1].is_static);
    assert_eq!(
        table.primary_keys,
        [PrimaryKey { partition: vec!["a".into(), "d".into()], clustering: vec!["c".into()] }]
    );
    assert_eq!(table.options.clustering_order, [ClusteringOrder { column: "c".into(), is_descending: true }]);
    let properties = &table.options.properties;
    let map: Vec<_> = properties[0].value.as_map().unwrap().collect();
    assert_eq!(map, [("class", "x"), ("n", "4")]);
    assert_eq!(properties[1].value.as_text(), Some("NONE"));
    assert_eq!(properties[2].value, PropertyValue::Keyword("all".into()));
}

#[test]
fn types_nest() {
    let int = || Box::new(CqlTypeName::Native(NativeType::Int));
    assert_eq!(
        parse_type("Map<INT, list<int>>"),
        Ok(CqlTypeName::Map(int(), Box::new(CqlTypeName::List(int()))))
    );
    assert_eq!(parse_type("vector<int, 3>"), Ok(CqlTypeName::Vector(int(), 3)));
    assert_eq!(
        parse_type("ks.\"T\""),
        Ok(CqlTypeName::User { keyspace: Some("ks".into()), name: "T".into() })
    );
    assert_eq!(parse_type("list"), Ok(CqlTypeName::User { keyspace: None, name: "list".into() }));
    assert!(parse_type("int int").is_err());
    assert!(parse_type("").is_err());
}

#[test]
fn every_kind_of_statement_knows_its_label() {
    for (text, label) in [
        ("CREATE INDEX ON t (a)", "CREATE INDEX"),
        ("DROP MATERIALIZED VIEW v", "DROP MATERIALIZED VIEW"),
        ("LIST USERS", "LIST USERS"),
        ("GRANT SELECT ON t TO r", "GRANT"),
    ] {
        assert_eq!(kind(text).label(), label);
    }
}

/// Every construct that may contain itself, nested so deep that recursion without a bound would
/// overflow the stack.
fn nestings(levels: usize) -> Vec<String> {
    let nest = |open: &str, inner: &str, close: &str| open.repeat(levels) + inner + &close.repeat(levels);
    let value = |term: String| format!("INSERT INTO t (a) VALUES ({term})");
    let selected = |selector: String| format!("SELECT {selector} FROM t");
    vec![
        value(nest("[", "1", "]")),
        value(nest("(", "1", ")")),
        value(nest("{", "1", "}")),
        value(nest("{a: ", "1", "}")),
        value(nest("{1: ", "1", "}")),
        value(nest("f(", "1", ")")),
        value(nest("(int)", "1", "")),
        value(nest("CAST(", "1", " AS int)")),
        selected(nest("(", "a", ")")),
        selected(nest("[", "a", "]")),
        selected(nest("{", "a", "}")),
        selected(nest("f(", "a", ")")),
        selected(nest("- ", "a", "")),
        selected(nest("(int)", "a", "")),
        selected(nest("CAST(", "a", " AS int)")),
        selected(nest("a[", "1", "]")),
        format!("SELECT * FROM t WHERE {}", nest("(", "a = 1", ")")),
        format!("CREATE TABLE t (a {})", nest("list<", "int", ">")),
        format!("CREATE TABLE t (a {})", nest("map<int, ", "int", ">")),
        format!("SELECT ({})1 FROM t", nest("list<", "int", ">")),
    ]
}

#[test]
fn nesting_has_a_bound() {
    for text in nestings(50_000) {
        let message = parse_statement(&text).expect_err("refused").to_string();
        assert!(message.len() < text.len() + 200, "{}", &message[..200.min(message.len())]);
    }
    let deep = nestings(50_000);
    assert_eq!(
        parse_statement(&deep[0]).expect_err("refused").message(),
        format!("line 1:{} nested deeper than {NESTING_MAX} levels", 26 + NESTING_MAX)
    );
}

#[test]
fn nesting_below_the_bound_parses_and_prints() {
    for text in nestings(NESTING_MAX as usize - 2) {
        let Ok(statement) = parse_statement(&text) else {
            // The first is no statement of the language; in the other a type is looked over
            // before it is read, and not so deep.
            assert!(text.contains("a[a[") || text.starts_with("SELECT (list<list<"), "{text}");
            continue;
        };
        assert_eq!(parse_statement(&statement.to_string()).as_ref(), Ok(&statement));
    }
}

#[test]
fn operators_have_a_bound() {
    let most = NESTING_MAX - 1;
    let sum = |count: u32| format!("INSERT INTO t (a) VALUES (1{})", " + 1".repeat(count as usize));
    assert!(parse_statement(&sum(most)).is_ok());
    assert!(parse_statement(&sum(most + 1)).is_err());
    let parts = |count: u32| format!("SELECT a{} FROM t", "[1]".repeat(count as usize));
    assert!(parse_statement(&parts(most)).is_ok());
    assert!(parse_statement(&parts(most + 1)).is_err());
    // Each term has its own count, wherever it stands.
    let row = vec!["1 + 1"; 1000].join(", ");
    assert!(parse_statement(&format!("INSERT INTO t (a) VALUES ({row}, [{row}])")).is_ok());
}

#[test]
fn operators_and_levels_have_a_bound_together() {
    let nested = |depth: u32, count: u32| {
        let (open, close) = ("f(".repeat(depth as usize), ")".repeat(depth as usize));
        format!("INSERT INTO t (a) VALUES ({open}1{}{close})", " + 1".repeat(count as usize))
    };
    assert!(parse_statement(&nested(NESTING_MAX / 2, NESTING_MAX / 2 - 1)).is_ok());
    assert!(parse_statement(&nested(NESTING_MAX / 2, NESTING_MAX / 2)).is_err());
    let before = |count: u32| format!("INSERT INTO t (a) VALUES (1{} + f(1))", " + 1".repeat(count as usize));
    assert!(parse_statement(&before(NESTING_MAX - 3)).is_ok());
    assert!(parse_statement(&before(NESTING_MAX - 2)).is_err());
}
