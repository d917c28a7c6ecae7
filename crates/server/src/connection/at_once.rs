//! Reads of one row that are answered as soon as their frame is seen.
//!
//! ```text
//!   frame ─ PointExecute ─ point_query ─ point_read ──► the row's cells, into the connection's output
//!              │ unusual      │ not such     │ not at hand
//!              └──────────────┴──────────────┴────► a request as every other
//! ```

use protocol::{Flags, Frame, Opcode, PointExecute, Stage};

use super::answer::Wanted;
use super::drive::Connection;
use crate::clients::PanicCount;
use crate::convert;

impl Connection {
    /// Answers a read of one row, if that needs no waiting. `false` when it is for others to answer.
    pub(super) fn answer_at_once(&mut self, frame: &Frame) -> bool {
        if self.stage != Stage::Ready {
            return false;
        }
        self.try_at_once(frame).is_some()
    }

    fn try_at_once(&mut self, frame: &Frame) -> Option<()> {
        let execute = PointExecute::of(frame)?;
        let (server, version) = (&self.server, frame.header.version);
        let query = server.engine.point_query(execute.id.try_into().ok()?)?;
        let wanted =
            Wanted { skip_metadata: execute.skip_metadata, known_metadata_id: execute.result_metadata_id };
        let described = server.metadata.describe(query.metadata_id(), query.columns(), wanted);
        let page_size = convert::page_size(execute.page_size);
        let consistency = convert::consistency(execute.consistency);
        let (encoder, stream) = (&mut self.encoder, frame.header.stream);
        let _counted = PanicCount(&server.clients);
        server.engine.point_read(&query, execute.value(), consistency, page_size, |row| {
            encoder.append_with(version, stream, Opcode::Result, Flags::NONE, |out| {
                described.write_rows(out, version, None, |sink| row.write(sink));
            });
        })?;
        self.client.count_request();
        Some(())
    }
}
