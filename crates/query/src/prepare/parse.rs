//! Texts to trees, without keeping the shard and without filling the memory.
//!
//! A text may be 16 MiB, and the tree of one that is all commas and ones takes a hundred times as much, and a second.
//! So the tokens of a text that is not short are counted first: there must be room for what becomes of them, and where
//! they are many other threads parse them and plan the statement.

use std::cell::OnceCell;
use std::sync::Arc;

use cql::ast::Statement;
use runtime::Io;

use crate::QueryError;
use crate::error::refuse;
use crate::memory::AnswerRoom;
use crate::terms;

/// Texts of up to so many bytes are parsed as they come: in 3 ms at most, nearly all in far less.
const SHORT_TEXT_BYTES: usize = 16 << 10;
/// Texts of up to so many bytes are never refused for what becomes of them: 25 MiB at most, and nearly always 1 MiB.
const SMALL_TEXT_BYTES: usize = 64 << 10;
/// So many tokens are parsed here, in a millisecond or two, and planned in as much; more of them on another thread.
const HERE_TOKENS_MAX: usize = 8 << 10;

/// What becomes of a token, in bytes: its place in the list of tokens and in the tree, and in the plan, while all of
/// them are there. `tests/allocations.rs` holds it against what is allocated.
const BYTES_OF_TOKEN: usize = 400;

/// A text's tree.
pub(crate) struct Parsed {
    pub(crate) statement: Statement,
    /// How many tokens the text has; `None` of a short text, whose tokens were not counted.
    pub(crate) token_count: Option<usize>,
    /// Is there so much of it that to plan it, too, is work for another thread?
    pub(crate) is_long: bool,
}

/// Parses the text of a request, whose memory counts in its room.
///
/// # Errors
/// It is wrong, or there is no room for what it comes to.
pub(crate) async fn parse(text: &str, io: &Io, room: &mut AnswerRoom) -> Result<Parsed, QueryError> {
    if text.len() <= SHORT_TEXT_BYTES {
        return Ok(Parsed { statement: cql::parse_statement(text)?, token_count: None, is_long: false });
    }
    // Boxed, so that the many short texts need no room for it.
    Box::pin(parse_long(text, io, room)).await
}

async fn parse_long(text: &str, io: &Io, room: &mut AnswerRoom) -> Result<Parsed, QueryError> {
    let is_long = terms::is_long(text.as_bytes());
    if is_long {
        // To have come here with it took its time, and so does a copy.
        tokio::task::yield_now().await;
    }
    let elsewhere = OnceCell::new();
    let for_elsewhere = || Arc::clone(elsewhere.get_or_init(|| Arc::<str>::from(text)));
    let token_count = if is_long {
        let text = for_elsewhere();
        io.run(move || cql::token_count(&text)).await
    } else {
        cql::token_count(text)
    };
    if text.len() > SMALL_TEXT_BYTES {
        make_room(token_count, room).await?;
    }
    let is_long = is_long || token_count > HERE_TOKENS_MAX;
    let statement = if is_long {
        let text = for_elsewhere();
        io.run(move || cql::parse_statement(&text)).await?
    } else {
        cql::parse_statement(text)?
    };
    Ok(Parsed { statement, token_count: Some(token_count), is_long })
}

/// Makes room for the texts of a batch that are small each for itself.
///
/// # Errors
/// There is none.
pub(crate) async fn make_room_for_small(
    texts: impl Iterator<Item = &str> + Clone,
    room: &mut AnswerRoom,
) -> Result<(), QueryError> {
    let small = texts.filter(|text| text.len() <= SMALL_TEXT_BYTES);
    if small.clone().map(str::len).sum::<usize>() <= SMALL_TEXT_BYTES {
        return Ok(());
    }
    let mut piece = runtime::Piece::of_turn();
    let mut token_count = 0;
    for text in small {
        token_count += cql::token_count(text);
        piece.give_way().await;
    }
    make_room(token_count, room).await
}

async fn make_room(token_count: usize, room: &mut AnswerRoom) -> Result<(), QueryError> {
    if !room.for_statement(token_count * BYTES_OF_TOKEN).await {
        let most = room.answer_bytes_max() / BYTES_OF_TOKEN;
        refuse!(
            "The statement has {token_count} tokens: more than the {most} that there is memory for. Bind values to \
             markers, or send several statements"
        );
    }
    Ok(())
}
