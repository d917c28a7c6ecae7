//! The keywords, which of them may be names, and how a word is recognised.
//!
//! Cassandra has more words that are free than reserved; which ones, and in which places, is part
//! of the language: `CREATE TABLE user (key text PRIMARY KEY, ttl int)` is fine.

use super::TokenKind;

/// Where a keyword may stand for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeywordClass {
    /// Nowhere, unless quoted.
    Reserved,
    /// Everywhere.
    Basic,
    /// The native types: everywhere but as the name of a user type.
    Native,
    /// As a column, a table, …, not as a function.
    Extra,
}

macro_rules! keywords {
    ($($kind:ident, $class:ident, $display:literal, [$($spelling:literal),+];)*) => {
        /// Every spelling with its token.
        const SPELLINGS: &[(&str, TokenKind)] = &[$($(($spelling, TokenKind::$kind),)+)*];

        /// The class of a keyword; none for other tokens.
        pub(crate) const fn class_of(kind: TokenKind) -> Option<KeywordClass> {
            match kind {
                $(TokenKind::$kind => Some(KeywordClass::$class),)*
                _ => None,
            }
        }

        /// The name that error messages give a keyword.
        pub(super) const fn display_name(kind: TokenKind) -> Option<&'static str> {
            match kind {
                $(TokenKind::$kind => Some($display),)*
                _ => None,
            }
        }
    };
}

keywords! {
    Access, Basic, "K_ACCESS", ["access"];
    Add, Reserved, "K_ADD", ["add"];
    Aggregate, Basic, "K_AGGREGATE", ["aggregate"];
    Aggregates, Basic, "K_AGGREGATES", ["aggregates"];
    All, Basic, "K_ALL", ["all"];
    Allow, Reserved, "K_ALLOW", ["allow"];
    Alter, Reserved, "K_ALTER", ["alter"];
    And, Reserved, "K_AND", ["and"];
    Ann, Basic, "K_ANN", ["ann"];
    Apply, Reserved, "K_APPLY", ["apply"];
    As, Basic, "K_AS", ["as"];
    Asc, Reserved, "K_ASC", ["asc"];
    Ascii, Native, "K_ASCII", ["ascii"];
    Authorize, Reserved, "K_AUTHORIZE", ["authorize"];
    Batch, Reserved, "K_BATCH", ["batch"];
    Begin, Reserved, "K_BEGIN", ["begin"];
    Bigint, Native, "K_BIGINT", ["bigint"];
    Blob, Native, "K_BLOB", ["blob"];
    Boolean, Native, "K_BOOLEAN", ["boolean"];
    By, Reserved, "K_BY", ["by"];
    Called, Basic, "K_CALLED", ["called"];
    Cast, Extra, "K_CAST", ["cast"];
    Cidrs, Basic, "K_CIDRS", ["cidrs"];
    Cluster, Basic, "K_CLUSTER", ["cluster"];
    Clustering, Basic, "K_CLUSTERING", ["clustering"];
    Table, Reserved, "K_COLUMNFAMILY", ["columnfamily", "table"];
    Compact, Basic, "K_COMPACT", ["compact"];
    Contains, Basic, "K_CONTAINS", ["contains"];
    Count, Extra, "K_COUNT", ["count"];
    Counter, Native, "K_COUNTER", ["counter"];
    Create, Reserved, "K_CREATE", ["create"];
    Custom, Basic, "K_CUSTOM", ["custom"];
    Datacenters, Basic, "K_DATACENTERS", ["datacenters"];
    Date, Native, "K_DATE", ["date"];
    Decimal, Native, "K_DECIMAL", ["decimal"];
    Default, Basic, "K_DEFAULT", ["default"];
    Delete, Reserved, "K_DELETE", ["delete"];
    Desc, Reserved, "K_DESC", ["desc"];
    Describe, Reserved, "K_DESCRIBE", ["describe"];
    Distinct, Extra, "K_DISTINCT", ["distinct"];
    Double, Native, "K_DOUBLE", ["double"];
    Drop, Reserved, "K_DROP", ["drop"];
    Duration, Native, "K_DURATION", ["duration"];
    Entries, Reserved, "K_ENTRIES", ["entries"];
    Execute, Reserved, "K_EXECUTE", ["execute"];
    Exists, Basic, "K_EXISTS", ["exists"];
    Filtering, Basic, "K_FILTERING", ["filtering"];
    Finalfunc, Basic, "K_FINALFUNC", ["finalfunc"];
    Float, Native, "K_FLOAT", ["float"];
    From, Reserved, "K_FROM", ["from"];
    Frozen, Basic, "K_FROZEN", ["frozen"];
    Full, Reserved, "K_FULL", ["full"];
    Function, Basic, "K_FUNCTION", ["function"];
    Functions, Basic, "K_FUNCTIONS", ["functions"];
    Grant, Reserved, "K_GRANT", ["grant"];
    Group, Basic, "K_GROUP", ["group"];
    Hashed, Basic, "K_HASHED", ["hashed"];
    Identity, Basic, "K_IDENTITY", ["identity"];
    If, Reserved, "K_IF", ["if"];
    In, Reserved, "K_IN", ["in"];
    Index, Reserved, "K_INDEX", ["index"];
    Inet, Native, "K_INET", ["inet"];
    Initcond, Basic, "K_INITCOND", ["initcond"];
    Input, Basic, "K_INPUT", ["input"];
    Insert, Reserved, "K_INSERT", ["insert"];
    Int, Native, "K_INT", ["int"];
    Internals, Basic, "K_INTERNALS", ["internals"];
    Into, Reserved, "K_INTO", ["into"];
    Is, Reserved, "K_IS", ["is"];
    Json, Extra, "K_JSON", ["json"];
    Key, Extra, "K_KEY", ["key"];
    Keys, Basic, "K_KEYS", ["keys"];
    Keyspace, Reserved, "K_KEYSPACE", ["keyspace"];
    Keyspaces, Basic, "K_KEYSPACES", ["keyspaces"];
    Language, Basic, "K_LANGUAGE", ["language"];
    Like, Basic, "K_LIKE", ["like"];
    Limit, Reserved, "K_LIMIT", ["limit"];
    List, Basic, "K_LIST", ["list"];
    Login, Basic, "K_LOGIN", ["login"];
    Map, Basic, "K_MAP", ["map"];
    Masked, Basic, "K_MASKED", ["masked"];
    Materialized, Reserved, "K_MATERIALIZED", ["materialized"];
    Maxwritetime, Extra, "K_MAXWRITETIME", ["maxwritetime"];
    Mbean, Basic, "K_MBEAN", ["mbean"];
    Mbeans, Basic, "K_MBEANS", ["mbeans"];
    Modify, Reserved, "K_MODIFY", ["modify"];
    Nologin, Basic, "K_NOLOGIN", ["nologin"];
    Norecursive, Reserved, "K_NORECURSIVE", ["norecursive"];
    Nosuperuser, Basic, "K_NOSUPERUSER", ["nosuperuser"];
    Not, Reserved, "K_NOT", ["not"];
    Null, Reserved, "K_NULL", ["null"];
    Of, Reserved, "K_OF", ["of"];
    On, Reserved, "K_ON", ["on"];
    Only, Basic, "K_ONLY", ["only"];
    Options, Basic, "K_OPTIONS", ["options"];
    Or, Reserved, "K_OR", ["or"];
    Order, Reserved, "K_ORDER", ["order"];
    Partition, Basic, "K_PARTITION", ["partition"];
    Password, Basic, "K_PASSWORD", ["password"];
    Per, Basic, "K_PER", ["per"];
    Permission, Basic, "K_PERMISSION", ["permission"];
    Permissions, Basic, "K_PERMISSIONS", ["permissions"];
    Infinity, Reserved, "K_POSITIVE_INFINITY", ["infinity"];
    Nan, Reserved, "K_POSITIVE_NAN", ["nan"];
    Primary, Reserved, "K_PRIMARY", ["primary"];
    Rename, Reserved, "K_RENAME", ["rename"];
    Replace, Basic, "K_REPLACE", ["replace"];
    Returns, Basic, "K_RETURNS", ["returns"];
    Revoke, Reserved, "K_REVOKE", ["revoke"];
    Role, Basic, "K_ROLE", ["role"];
    Roles, Basic, "K_ROLES", ["roles"];
    Schema, Reserved, "K_SCHEMA", ["schema"];
    Select, Reserved, "K_SELECT", ["select"];
    SelectMasked, Basic, "K_SELECT_MASKED", ["select_masked"];
    Set, Reserved, "K_SET", ["set"];
    Sfunc, Basic, "K_SFUNC", ["sfunc"];
    Smallint, Native, "K_SMALLINT", ["smallint"];
    Static, Basic, "K_STATIC", ["static"];
    Storage, Basic, "K_STORAGE", ["storage"];
    Stype, Basic, "K_STYPE", ["stype"];
    Superuser, Basic, "K_SUPERUSER", ["superuser"];
    Tables, Basic, "K_TABLES", ["tables", "columnfamilies"];
    Text, Native, "K_TEXT", ["text"];
    Time, Native, "K_TIME", ["time"];
    Timestamp, Native, "K_TIMESTAMP", ["timestamp"];
    Timeuuid, Native, "K_TIMEUUID", ["timeuuid"];
    Tinyint, Native, "K_TINYINT", ["tinyint"];
    To, Reserved, "K_TO", ["to"];
    Token, Reserved, "K_TOKEN", ["token"];
    Trigger, Basic, "K_TRIGGER", ["trigger"];
    Truncate, Reserved, "K_TRUNCATE", ["truncate"];
    Ttl, Extra, "K_TTL", ["ttl"];
    Tuple, Basic, "K_TUPLE", ["tuple"];
    Type, Basic, "K_TYPE", ["type"];
    Types, Basic, "K_TYPES", ["types"];
    Unlogged, Reserved, "K_UNLOGGED", ["unlogged"];
    Unmask, Basic, "K_UNMASK", ["unmask"];
    Unset, Basic, "K_UNSET", ["unset"];
    Update, Reserved, "K_UPDATE", ["update"];
    Use, Reserved, "K_USE", ["use"];
    User, Basic, "K_USER", ["user"];
    Users, Basic, "K_USERS", ["users"];
    Using, Reserved, "K_USING", ["using"];
    Uuid, Native, "K_UUID", ["uuid"];
    Values, Basic, "K_VALUES", ["values"];
    Varchar, Native, "K_VARCHAR", ["varchar"];
    Varint, Native, "K_VARINT", ["varint"];
    Vector, Basic, "K_VECTOR", ["vector"];
    View, Reserved, "K_VIEW", ["view"];
    Where, Reserved, "K_WHERE", ["where"];
    With, Reserved, "K_WITH", ["with"];
    Writetime, Extra, "K_WRITETIME", ["writetime"];
}

const SPELLING_BYTES_MAX: usize = 14;
const SLOT_COUNT: usize = 1024;
const EMPTY: u8 = u8::MAX;

/// Open addressing over [`SPELLINGS`], filled at compile time.
static SLOTS: [u8; SLOT_COUNT] = fill_slots();

const _: () = assert!(SPELLINGS.len() < EMPTY as usize, "an index must fit a slot");

const fn fill_slots() -> [u8; SLOT_COUNT] {
    let mut slots = [EMPTY; SLOT_COUNT];
    let mut index = 0;
    while index < SPELLINGS.len() {
        let word = SPELLINGS[index].0.as_bytes();
        assert!(word.len() <= SPELLING_BYTES_MAX, "SPELLING_BYTES_MAX is the longest spelling");
        let mut slot = hash(word);
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOT_COUNT;
        }
        slots[slot] = index as u8;
        index += 1;
    }
    slots
}

/// Ignores the case of letters: length, ends and middle tell nearly all keywords apart.
const fn hash(word: &[u8]) -> usize {
    let length = word.len();
    let first = (word[0] | 0x20) as u32;
    let early = (word[length / 4] | 0x20) as u32;
    let middle = (word[length / 2] | 0x20) as u32;
    let last = (word[length - 1] | 0x20) as u32;
    let mixed = (first | early << 8 | middle << 16 | last << 24) ^ (length as u32).wrapping_mul(0x9E37);
    (mixed.wrapping_mul(0x9E37_79B1) >> 22) as usize % SLOT_COUNT
}

/// The keyword that a word is, in any case.
#[inline]
pub(crate) fn find(word: &[u8]) -> Option<TokenKind> {
    if word.is_empty() || word.len() > SPELLING_BYTES_MAX {
        return None;
    }
    let mut slot = hash(word);
    loop {
        let index = SLOTS[slot];
        if index == EMPTY {
            return None;
        }
        let (spelling, kind) = SPELLINGS[usize::from(index)];
        if spelling.as_bytes().eq_ignore_ascii_case(word) {
            return Some(kind);
        }
        slot = (slot + 1) % SLOT_COUNT;
    }
}

/// Whether a word must be quoted to be a name, because it is a keyword that is reserved.
pub(crate) fn is_reserved(word: &str) -> bool {
    find(word.as_bytes()).is_some_and(|kind| class_of(kind) == Some(KeywordClass::Reserved))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_found_in_any_case() {
        for (spelling, kind) in SPELLINGS {
            assert_eq!(find(spelling.as_bytes()), Some(*kind), "{spelling}");
            assert_eq!(find(spelling.to_uppercase().as_bytes()), Some(*kind), "{spelling}");
        }
    }

    #[test]
    fn other_words_are_not_found() {
        for word in ["a", "selec", "selects", "t", "user_id", "k", "averyveryverylongword", "x1"] {
            assert_eq!(find(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn reserved_words_are_those_of_cassandra() {
        let reserved = "add allow alter and apply asc authorize batch begin by columnfamily create delete desc \
                        describe drop entries execute from full grant if in index infinity insert into is \
                        keyspace limit materialized modify nan norecursive not null of on or order primary \
                        rename revoke schema select set table to token truncate unlogged update use using view \
                        where with";
        for (spelling, _) in SPELLINGS {
            let expected = reserved.split_whitespace().any(|word| word == *spelling);
            assert_eq!(is_reserved(spelling), expected, "{spelling}");
        }
        for word in ["key", "ttl", "timestamp", "as", "like", "user", "foo"] {
            assert!(!is_reserved(word), "{word}");
        }
    }
}
