//! Tests of the lexer.

use super::TokenKind as Kind;
use super::*;

fn kinds(text: &str) -> Vec<Kind> {
    let (tokens, error) = Lexer::new(text).tokenize();
    assert_eq!(error, None, "{text}");
    tokens.iter().map(|token| token.kind).filter(|kind| *kind != Kind::End).collect()
}

fn error(text: &str) -> String {
    let (_, error) = Lexer::new(text).tokenize();
    error.unwrap_or_else(|| panic!("{text} is fine")).describe(text).to_string()
}

#[test]
fn signs_are_taken_as_long_as_possible() {
    assert_eq!(
        kinds("<= < >= > != = += + -= - .. . * / %"),
        [
            Kind::LessOrEqual,
            Kind::Less,
            Kind::GreaterOrEqual,
            Kind::Greater,
            Kind::NotEqual,
            Kind::Equal,
            Kind::PlusEqual,
            Kind::Plus,
            Kind::MinusEqual,
            Kind::Minus,
            Kind::Range,
            Kind::Dot,
            Kind::Star,
            Kind::Slash,
            Kind::Percent,
        ]
    );
}

#[test]
fn numbers_are_told_apart() {
    for (text, kind) in [
        ("0", Kind::Integer),
        ("-12", Kind::Integer),
        ("123456789012345678901234567890", Kind::Integer),
        ("1.", Kind::FloatLiteral),
        ("-1.5", Kind::FloatLiteral),
        ("1e5", Kind::FloatLiteral),
        ("1.5E-3", Kind::FloatLiteral),
        ("123456789e+2", Kind::FloatLiteral),
        ("0x", Kind::HexNumber),
        ("0XcafE", Kind::HexNumber),
        ("123e4567-e89b-12d3-a456-426614174000", Kind::UuidLiteral),
        ("DEADBEEF-e89b-12d3-a456-426614174000", Kind::UuidLiteral),
        ("12345678-e89b-12d3-a456-426614174000", Kind::UuidLiteral),
        ("1d2d3456-e89b-12d3-a456-426614174000", Kind::UuidLiteral),
        ("1e345678-e89b-12d3-a456-426614174000", Kind::UuidLiteral),
        ("1h30m", Kind::DurationLiteral),
        ("-2mo10d12h", Kind::DurationLiteral),
        ("1y2MO3w4D5h6m7s8ms9us10ns", Kind::DurationLiteral),
        ("5µs", Kind::DurationLiteral),
        ("12d", Kind::DurationLiteral),
        ("P1Y2M3DT4H5M6S", Kind::DurationLiteral),
        ("-PT5M", Kind::DurationLiteral),
        ("P2W", Kind::DurationLiteral),
        ("P0001-02-03T04:05:06", Kind::DurationLiteral),
        ("P1", Kind::Identifier),
        ("P1Yx", Kind::Identifier),
        ("NaN", Kind::Nan),
        ("-nan", Kind::NegativeNan),
        ("Infinity", Kind::Infinity),
        ("-Infinity", Kind::NegativeInfinity),
        ("TRUE", Kind::BooleanLiteral),
        ("false", Kind::BooleanLiteral),
    ] {
        assert_eq!(kinds(text), [kind], "{text}");
    }
}

#[test]
fn ranges_are_not_fractions() {
    assert_eq!(kinds("1..2"), [Kind::Integer, Kind::Range, Kind::Integer]);
    assert_eq!(kinds("1...2"), [Kind::FloatLiteral, Kind::Range, Kind::Integer]);
    assert_eq!(kinds("..2"), [Kind::Range, Kind::Integer]);
}

#[test]
fn a_minus_before_digits_belongs_to_the_number() {
    assert_eq!(kinds("a-1"), [Kind::Identifier, Kind::Integer]);
    assert_eq!(kinds("a - 1"), [Kind::Identifier, Kind::Minus, Kind::Integer]);
}

#[test]
fn quotes_may_be_doubled() {
    for (text, kind) in [
        ("''", Kind::StringLiteral),
        ("'it''s'", Kind::StringLiteral),
        ("''''", Kind::StringLiteral),
        ("$$it's$$", Kind::DollarString),
        ("$$$$", Kind::DollarString),
        ("\"a\"\"b\"", Kind::QuotedName),
        ("\"\"\"\"", Kind::QuotedName),
        ("\"\"", Kind::EmptyQuotedName),
    ] {
        assert_eq!(kinds(text), [kind], "{text}");
    }
}

#[test]
fn comments_are_skipped() {
    assert_eq!(kinds("a -- b\n c // d\r e /* f \n g */ h"), [Kind::Identifier; 4]);
}

#[test]
fn expr_and_its_parenthesis_are_one_token() {
    assert_eq!(kinds("expr("), [Kind::ExprParenthesis]);
    assert_eq!(kinds("expr ("), [Kind::Identifier, Kind::OpenParenthesis]);
    assert_eq!(kinds("EXPR("), [Kind::Identifier, Kind::OpenParenthesis]);
}

#[test]
fn errors_read_like_those_of_cassandra() {
    for (text, message) in [
        ("#", "line 1:0 no viable alternative at character '#'"),
        ("a\n  é", "line 2:2 no viable alternative at character 'é'"),
        ("'abc", "line 1:4 mismatched character '<EOF>' expecting '''"),
        ("\"abc", "line 1:4 mismatched character '<EOF>' expecting '\"'"),
        ("-- abc", "line 1:6 mismatched character '<EOF>' expecting set null"),
        ("/* abc", "line 1:6 mismatched character '<EOF>' expecting '*'"),
        ("12abc ", "line 1:5 mismatched character ' ' expecting set null"),
        ("deadbeef-1 ", "line 1:10 mismatched character ' ' expecting set null"),
        ("1e ", "line 1:2 no viable alternative at character ' '"),
        ("12d3 ", "line 1:4 no viable alternative at character ' '"),
        ("-now()", "line 1:2 mismatched character 'o' expecting set null"),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
}

#[test]
fn every_text_ends() {
    for text in ["", " ", "-", "-P", "P", "$", "1.", "0x", "1d2", "é", "-n", "/", "!"] {
        let (tokens, _) = Lexer::new(text).tokenize();
        assert!(matches!(tokens.last().map(|token| token.kind), Some(Kind::End | Kind::Invalid)));
    }
}

#[test]
fn tokens_are_counted_as_the_parser_sees_them() {
    let counts = [("", 0), ("SELECT * FROM t -- all", 4), ("a /* b */ = 'c d' ;", 4), ("1, # 2", 2)];
    for (text, count) in counts {
        assert_eq!(super::count_tokens(text), count, "{text}");
        assert_eq!(Lexer::new(text).tokenize().0.len(), count + 1, "{text}");
    }
}
