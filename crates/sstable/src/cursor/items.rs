//! Items of a partition one by one, by where they are in Data.

use std::sync::Arc;

use rows::{Bound, DeletionTime, LARGE_ROW_BYTES, Marker, Row, Unfiltered};

use super::chunks::{Attempt, Chunks, Interrupt};
use crate::data::{Decoder, Head, HeadKind, Layout, ParseError, pass_rows};
use crate::{ChunkSource, Component, LargeRow, RowReader, SstableError, TableFile};

/// Reads items.
#[derive(Debug)]
pub(crate) struct Items {
    file: Arc<TableFile>,
    pub(crate) decoder: Decoder,
}

impl Items {
    pub(crate) fn new(file: Arc<TableFile>) -> Self {
        Items { file, decoder: Decoder::default() }
    }

    pub(crate) fn layout(&self) -> &Layout {
        self.file.layout()
    }

    /// The head of the item at a place.
    pub(crate) fn head<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        position: u64,
        is_static: bool,
    ) -> Attempt<Head> {
        let (layout, decoder) = (self.file.layout(), &mut self.decoder);
        chunks.parse(Component::Data, position, |bytes| decoder.head(layout, bytes, is_static))
    }

    /// Passes rows that stand before a bound, as far as bytes are at hand; a marker stops it too.
    /// Gives the place of the first item not passed.
    pub(crate) fn skip_rows<S: ChunkSource>(
        &self,
        chunks: &mut Chunks<S>,
        position: u64,
        bound: &Bound,
    ) -> Attempt<u64> {
        let bytes = chunks.bytes(Component::Data, position, 1)?;
        let passed = pass_rows(self.file.layout(), bytes, bound) as u64;
        Ok(position + passed)
    }

    /// The whole row whose head was read last; `None` when nothing of it is left.
    pub(crate) fn row<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        position: u64,
        head: &Head,
        is_static: bool,
    ) -> Attempt<Option<Row>> {
        let may_be_long =
            head.item_bytes >= LARGE_ROW_BYTES as u64 && self.file.layout().columns(is_static).has_complex;
        let reader = if may_be_long { chunks.large_row(position) } else { RowReader::Cursor };
        if let RowReader::Other(Some(read)) = reader {
            return Ok(read.into_row()?);
        }
        if let RowReader::Other(None) = reader {
            let item_bytes = usize::try_from(head.item_bytes).unwrap_or(usize::MAX);
            return Err(Interrupt::Row(Box::new(LargeRow {
                file: Arc::clone(&self.file),
                position,
                head: *head,
                is_static,
                clustering: self.decoder.clustering().to_vec(),
                pieces: chunks.pieces(position, item_bytes)?,
            })));
        }
        let body = body(chunks, position, head)?;
        let parsed = self.decoder.row(self.file.layout(), head, is_static, body);
        parsed.map_err(|error| damaged(chunks.file(), position, error).into())
    }

    /// The marker whose head was read last.
    pub(crate) fn marker<S: ChunkSource>(
        &mut self,
        chunks: &mut Chunks<S>,
        position: u64,
        head: &Head,
        kind: u8,
    ) -> Attempt<Marker> {
        let body = body(chunks, position, head)?;
        let parsed = self.decoder.marker(self.file.layout(), kind, body);
        parsed.map_err(|error| damaged(chunks.file(), position, error).into())
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
}

/// The body of an item, at hand as a whole.
fn body<'a, S: ChunkSource>(chunks: &'a mut Chunks<S>, position: u64, head: &Head) -> Attempt<&'a [u8]> {
    let wanted = usize::try_from(head.item_bytes).unwrap_or(usize::MAX);
    let bytes = chunks.bytes(Component::Data, position, wanted)?;
    Ok(&bytes[head.body_start..wanted])
}

/// A body has all its bytes at hand, so one that ends too soon is damaged too.
pub(crate) fn damaged(file: &TableFile, position: u64, error: ParseError) -> SstableError {
    let what = match error {
        ParseError::Short { .. } => "a row or marker reaches beyond its end",
        ParseError::Malformed(what) => what,
    };
    file.damaged(Component::Data, position, what)
}
