//! Items of a partition one by one, by where they are in Data.

use rows::{DeletionTime, Marker, Row, Unfiltered};

use super::chunks::{Attempt, Chunks};
use crate::data::{Decoder, Head, HeadKind, ParseError};
use crate::{ChunkSource, Component};

/// Reads items.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) decoder: Decoder,
}

impl Items {
    /// The head of the item at a place.
    pub(crate) fn head<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        position: u64,
        is_static: bool,
    ) -> Attempt<Head> {
        let file = chunks.file().clone();
        let decoder = &mut self.decoder;
        chunks.parse(Component::Data, position, |bytes| decoder.head(file.layout(), bytes, is_static))
    }

    /// The whole row whose head was read last; `None` when nothing of it is left.
    pub(crate) fn row<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        position: u64,
        head: &Head,
        is_static: bool,
    ) -> Attempt<Option<Row>> {
        let file = chunks.file().clone();
        let body = self.body(chunks, position, head)?;
        let decoder = &mut self.decoder;
        let parsed = decoder.row(file.layout(), head, is_static, body);
        parsed.map_err(|error| damaged(chunks, position, error))
    }

    /// The marker whose head was read last.
    pub(crate) fn marker<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        position: u64,
        head: &Head,
        kind: u8,
    ) -> Attempt<Marker> {
        let file = chunks.file().clone();
        let body = self.body(chunks, position, head)?;
        let parsed = self.decoder.marker(file.layout(), kind, body);
        parsed.map_err(|error| damaged(chunks, position, error))
    }

    /// The item whose head was read last, whichever it is. A marker changes what is open.
    pub(crate) fn item<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        position: u64,
        head: &Head,
        open: &mut DeletionTime,
    ) -> Attempt<Option<Unfiltered>> {
        Ok(match head.kind {
            HeadKind::End => None,
            HeadKind::Row => self.row(chunks, position, head, false)?.map(Unfiltered::Row),
            HeadKind::Marker(kind) => {
                let marker = self.marker(chunks, position, head, kind)?;
                *open = marker.right;
                Some(Unfiltered::Marker(marker))
            }
        })
    }

    fn body<'a, S: ChunkSource>(
        &self,
        chunks: &'a mut Chunks<S>,
        position: u64,
        head: &Head,
    ) -> Attempt<&'a [u8]> {
        let wanted = usize::try_from(head.item_bytes).unwrap_or(usize::MAX);
        let bytes = chunks.bytes(Component::Data, position, wanted)?;
        Ok(&bytes[head.body_start..wanted])
    }
}

/// A body has all its bytes at hand, so one that ends too soon is damaged too.
fn damaged<S: ChunkSource>(chunks: &Chunks<S>, position: u64, error: ParseError) -> super::Interrupt {
    let what = match error {
        ParseError::Short { .. } => "a row or marker reaches beyond its end",
        ParseError::Malformed(what) => what,
    };
    chunks.file().damaged(Component::Data, position, what).into()
}
