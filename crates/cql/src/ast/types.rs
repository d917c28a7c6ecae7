//! Types as they are written, before names of user types are resolved.

use super::Ident;
use crate::text::Text;

/// A type in a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlTypeName {
    /// `int`, `text`, …
    Native(NativeType),
    /// `list<T>`
    List(Box<CqlTypeName>),
    /// `set<T>`
    Set(Box<CqlTypeName>),
    /// `map<K, V>`
    Map(Box<CqlTypeName>, Box<CqlTypeName>),
    /// `tuple<A, B, …>`
    Tuple(Vec<CqlTypeName>),
    /// `vector<T, 3>`; the dimension is as written and may be zero or negative.
    Vector(Box<CqlTypeName>, i32),
    /// `frozen<T>`
    Frozen(Box<CqlTypeName>),
    /// `'org.example.MyType'`: the name of a Java class.
    Custom(Text),
    /// `[keyspace.]name` of a user type.
    User {
        /// The keyspace, when it was written.
        keyspace: Option<Ident>,
        /// The name of the type.
        name: Ident,
    },
}

macro_rules! native_types {
    ($($variant:ident $name:literal,)*) => {
        /// The types that have a keyword of their own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum NativeType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl NativeType {
            /// All of them.
            pub const ALL: &'static [NativeType] = &[$(NativeType::$variant,)*];

            /// The keyword, in lower case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(NativeType::$variant => $name,)*
                }
            }
        }
    };
}

native_types! {
    Ascii "ascii",
    Bigint "bigint",
    Blob "blob",
    Boolean "boolean",
    Counter "counter",
    Date "date",
    Decimal "decimal",
    Double "double",
    Duration "duration",
    Float "float",
    Inet "inet",
    Int "int",
    Smallint "smallint",
    Text "text",
    Time "time",
    Timestamp "timestamp",
    Timeuuid "timeuuid",
    Tinyint "tinyint",
    Uuid "uuid",
    Varchar "varchar",
    Varint "varint",
}
