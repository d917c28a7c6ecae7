//! The values of a statement's markers.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

use query::{BindValue, ColumnSpec, QueryError};

use crate::values::Written;
use crate::{Error, ToCql};

/// What the markers of a statement can be bound to: `()` for none, a tuple, an array or a list in the
/// order of the markers, [`Named`] values, or a map of names to values.
///
/// Numbers and collections are checked against the type of their marker before the statement runs.
pub trait BindValues {
    /// The values in native encoding, one for each marker.
    ///
    /// # Errors
    /// Another number of values than of markers, or a value that does not fit.
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error>;

    /// Are there none?
    fn is_empty(&self) -> bool;
}

/// Values by the names of their markers: a `?` has the name of its column, a `:name` its own. A marker
/// without a value leaves its column as it is.
///
/// # Example
/// ```
/// use embedded::{Database, Named};
///
/// # let database = Database::in_memory()?;
/// let select = "SELECT key FROM system.local WHERE key = :wanted";
/// let rows = database.query(select, Named(&[("wanted", &"local")])).wait()?;
/// # assert_eq!(rows.all::<(String,)>().wait()?.len(), 1);
/// # Ok::<(), embedded::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Named<'a>(pub &'a [(&'a str, &'a (dyn ToCql + Sync))]);

impl std::fmt::Debug for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// One value for its marker.
fn bind_one(value: &dyn ToCql, marker: &ColumnSpec) -> Result<BindValue, Error> {
    let mut bytes = Vec::new();
    match value.to_cql(&marker.cql_type, &mut bytes) {
        Ok(Written::Value) => Ok(BindValue::Set(bytes.into())),
        Ok(Written::Null) => Ok(BindValue::Null),
        Ok(Written::Unset) => Ok(BindValue::Unset),
        Err(source) => Err(Error::Bind { name: marker.name.to_string(), source }),
    }
}

fn bind_all<'v>(
    values: impl ExactSizeIterator<Item = &'v dyn ToCql>,
    markers: &[ColumnSpec],
) -> Result<Vec<BindValue>, Error> {
    if values.len() != markers.len() {
        return Err(QueryError::Invalid("Invalid amount of bind variables".into()).into());
    }
    values.zip(markers).map(|(value, marker)| bind_one(value, marker)).collect()
}

fn bind_named<'v>(
    names: impl Iterator<Item = &'v str>,
    value_of: impl Fn(&str) -> Option<&'v dyn ToCql>,
    markers: &[ColumnSpec],
) -> Result<Vec<BindValue>, Error> {
    for name in names {
        if !markers.iter().any(|marker| *marker.name == *name) {
            return Err(Error::NoMarker { name: name.to_owned() });
        }
    }
    let bind = |marker: &ColumnSpec| match value_of(&marker.name) {
        Some(value) => bind_one(value, marker),
        None => Ok(BindValue::Unset),
    };
    markers.iter().map(bind).collect()
}

impl BindValues for () {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        bind_all([].into_iter(), markers)
    }

    fn is_empty(&self) -> bool {
        true
    }
}

impl<T: ToCql> BindValues for [T] {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        bind_all(self.iter().map(|value| value as &dyn ToCql), markers)
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl<T: ToCql, const N: usize> BindValues for [T; N] {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        self.as_slice().bind(markers)
    }

    fn is_empty(&self) -> bool {
        N == 0
    }
}

impl<T: ToCql> BindValues for Vec<T> {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        self.as_slice().bind(markers)
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl<V: BindValues + ?Sized> BindValues for &V {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        (**self).bind(markers)
    }

    fn is_empty(&self) -> bool {
        (**self).is_empty()
    }
}

impl BindValues for Named<'_> {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        let value_of = |name: &str| {
            self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value as &dyn ToCql)
        };
        bind_named(self.0.iter().map(|(name, _)| *name), value_of, markers)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: AsRef<str> + Eq + Hash, T: ToCql, S: BuildHasher> BindValues for HashMap<K, T, S> {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        let value_of = |name: &str| {
            self.iter().find(|(known, _)| (*known).as_ref() == name).map(|(_, value)| value as &dyn ToCql)
        };
        bind_named(self.keys().map(AsRef::as_ref), value_of, markers)
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl<K: AsRef<str> + Ord, T: ToCql> BindValues for BTreeMap<K, T> {
    fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
        let value_of = |name: &str| {
            self.iter().find(|(known, _)| (*known).as_ref() == name).map(|(_, value)| value as &dyn ToCql)
        };
        bind_named(self.keys().map(AsRef::as_ref), value_of, markers)
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

macro_rules! bind_tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: ToCql),*> BindValues for ($($name,)*) {
            fn bind(&self, markers: &[ColumnSpec]) -> Result<Vec<BindValue>, Error> {
                bind_all([$(&self.$index as &dyn ToCql),*].into_iter(), markers)
            }

            fn is_empty(&self) -> bool {
                false
            }
        }
    };
}

bind_tuple!(A 0);
bind_tuple!(A 0, B 1);
bind_tuple!(A 0, B 1, C 2);
bind_tuple!(A 0, B 1, C 2, D 3);
bind_tuple!(A 0, B 1, C 2, D 3, E 4);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
bind_tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15);
