//! Statements about one row that are carried out as soon as their frame is seen.
//!
//! ```text
//!   frame ─ PlainExecute ─ point_statement ─┬─ point_read ────► the row's cells ─┬─► the connection's output
//!              │ unusual      │ not such    ├─ write_at_once ─► done ────────────┘
//!              │              │             │ not at once
//!              └──────────────┴─────────────┴──► a request as every other
//! ```

use protocol::{Flags, Frame, Opcode, PlainExecute, Response, ResponseEnvelope, Stage};
use query::{PointQuery, PointStatement};

use super::answer::Wanted;
use super::drive::Connection;
use crate::clients::PanicCount;
use crate::convert;

impl Connection {
    /// Does and answers what needs no waiting. `false` when it is for others to answer; then nothing was
    /// done.
    pub(super) fn answer_at_once(&mut self, frame: &Frame) -> bool {
        if self.stage != Stage::Ready {
            return false;
        }
        let is_answered = self.try_at_once(frame).is_some();
        if is_answered {
            self.client.count_request();
        }
        is_answered
    }

    fn try_at_once(&mut self, frame: &Frame) -> Option<()> {
        let execute = PlainExecute::of(frame)?;
        match self.server.engine.point_statement(execute.id.try_into().ok()?)? {
            PointStatement::Read(query) => self.read_at_once(frame, execute, &query),
            PointStatement::Write(update) => {
                let _counted = PanicCount(&self.server.clients);
                let consistency = convert::consistency(execute.consistency);
                let (engine, values) = (&self.server.engine, execute.values);
                engine.write_at_once(&update, values, consistency, execute.timestamp).then_some(())?;
                let done = ResponseEnvelope::from(Response::Void);
                self.encoder.append_response(frame.header.version, frame.header.stream, &done);
                Some(())
            }
        }
    }

    fn read_at_once(
        &mut self,
        frame: &Frame,
        mut execute: PlainExecute<'_>,
        query: &PointQuery,
    ) -> Option<()> {
        let (server, version) = (&self.server, frame.header.version);
        let key = execute.values.next().filter(|_| execute.values.len() == 0)?;
        let wanted =
            Wanted { skip_metadata: execute.skip_metadata, known_metadata_id: execute.result_metadata_id };
        let described = server.metadata.describe(query.metadata_id(), query.columns(), wanted);
        let page_size = convert::page_size(execute.page_size);
        let consistency = convert::consistency(execute.consistency);
        let (encoder, stream) = (&mut self.encoder, frame.header.stream);
        let _counted = PanicCount(&server.clients);
        server.engine.point_read(query, execute.shared(key), consistency, page_size, |row| {
            encoder.append_with(version, stream, Opcode::Result, Flags::NONE, |out| {
                described.write_rows(out, version, None, |sink| row.write(sink));
            });
        })
    }
}
