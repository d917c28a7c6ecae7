//! A page of a description, and where the next begins.
//!
//! ```text
//!   u8 version 1 | u64 epoch of the schema | u64 rows given so far        big-endian
//! ```

use bytes::Bytes;
use stdx::cursor::Cursor;

use crate::QueryError;
use crate::error::refuse;
use crate::request::QueryOptions;

const VERSION: u8 = 1;

/// The elements of this page and the state to ask for the next with.
///
/// # Errors
/// The state is not ours, or the schema has changed since.
pub(super) fn cut<'e, T>(
    all: &'e [T],
    epoch: u64,
    options: &QueryOptions,
) -> Result<(&'e [T], Option<Bytes>), QueryError> {
    let offset = match &options.paging_state {
        None => 0,
        Some(state) => decode(state, epoch)?,
    };
    let rest = usize::try_from(offset).ok().and_then(|offset| all.get(offset..)).unwrap_or_default();
    let size = options.page_size.and_then(|size| usize::try_from(size).ok()).unwrap_or(usize::MAX);
    if size == 0 || rest.len() < size {
        return Ok((rest, None));
    }
    // As Cassandra does, a full page promises another, which may be empty.
    let next = offset.saturating_add(size as u64);
    Ok((&rest[..size], Some(encode(epoch, next))))
}

fn encode(epoch: u64, offset: u64) -> Bytes {
    let mut state = vec![VERSION];
    state.extend_from_slice(&epoch.to_be_bytes());
    state.extend_from_slice(&offset.to_be_bytes());
    state.into()
}

fn decode(state: &Bytes, epoch: u64) -> Result<u64, QueryError> {
    let Some((then, offset)) = read(state) else { refuse!("Incompatible paging state") };
    if then != epoch {
        refuse!(
            "The schema has changed since the previous page of the DESCRIBE statement result. Please retry the \
             DESCRIBE statement."
        );
    }
    Ok(offset)
}

fn read(state: &Bytes) -> Option<(u64, u64)> {
    let mut input = Cursor::new(state);
    if input.u8().ok()? != VERSION {
        return None;
    }
    let epoch = input.u64().ok()?;
    let offset = input.u64().ok()?;
    input.is_empty().then_some((epoch, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let all = [1, 2, 3, 4, 5];
        let mut options = QueryOptions { page_size: Some(2), ..QueryOptions::default() };
        let mut seen = Vec::new();
        loop {
            let (page, state) = cut(&all, 7, &options).expect("page");
            seen.extend_from_slice(page);
            let Some(state) = state else { break };
            options.paging_state = Some(state);
        }
        assert_eq!(seen, all);
        assert!(cut(&all, 8, &options).is_err());
        options.paging_state = Some(Bytes::from_static(b"\x01nonsense"));
        assert!(cut(&all, 7, &options).is_err());
    }
}
