//! A shard's end of the way: it takes what is in its mailbox, turn by turn, and lets visitors in between.

use std::rc::Rc;
use std::sync::Arc;

use runtime::{MailboxReceiver, Piece, Residence};

use super::errand::{ErrandBatch, Message};
use crate::shard::Shard;

/// Messages a shard takes before it lets its other tasks run and sends back results.
const MESSAGES_PER_TURN: usize = 64;

/// A shard's life: visitors find it until it is told to end.
pub(crate) async fn live(home: Arc<Residence<Shard>>, shard: Rc<Shard>, receiver: MailboxReceiver<Message>) {
    home.move_in(Rc::clone(&shard));
    serve(&shard, receiver).await;
    home.move_out();
    shard.left_reads().end();
}

/// A shard's main loop: does what others send, in turns, until it is told to end.
async fn serve(shard: &Rc<Shard>, mut receiver: MailboxReceiver<Message>) {
    let mut messages = Vec::with_capacity(MESSAGES_PER_TURN);
    let mut batch = ErrandBatch::with_capacity(MESSAGES_PER_TURN);
    while receiver.receive_batch(&mut messages, MESSAGES_PER_TURN).await > 0 {
        let mut piece = Piece::of_turn();
        shard.left_reads().go_on(shard);
        for message in messages.drain(..) {
            match message {
                Message::Errand(errand) => batch.begin(errand, shard),
                Message::Wake => {}
                Message::Exit => return batch.deliver(&mut piece).await,
            }
            if piece.is_long() {
                batch.deliver(&mut piece).await;
                piece.give_way().await;
            }
        }
        batch.deliver(&mut piece).await;
    }
}
