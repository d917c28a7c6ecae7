//! What the codec costs per request: from the bytes of an EXECUTE to its values, and from the cells
//! of a row to the bytes of its Rows.

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use protocol::{
    ColumnSpec, Compression, Consistency, Decoder, Encoder, Execute, Flags, Opcode, QueryParameters, Request,
    ResultMetadata, RowsHeader, RowsWriter, Value, Values, Version,
};
use types::CqlType;

/// Requests in one read, as a pipelining client sends them.
const BATCH: usize = 64;

fn execute() -> Request {
    let key = b"user6284781860667377211".as_slice();
    let field = [b'x'; 100];
    let mut parameters = QueryParameters::at(Consistency::LocalOne);
    parameters.values = Values::pack([Value::Bytes(&field), Value::Bytes(key)]);
    parameters.timestamp = Some(1_700_000_000_000_000);
    let id = vec![7_u8; 16];
    Request::Execute(Execute { id: id.clone().into(), result_metadata_id: Some(id.into()), parameters })
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode EXECUTE");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, version, compression) in [
        ("v4", Version::V4, None),
        ("v5", Version::V5, None),
        ("v5 lz4", Version::V5, Some(Compression::Lz4)),
    ] {
        let mut encoder = Encoder::client();
        encoder.establish(version, compression);
        (0..BATCH).for_each(|stream| encoder.append_request(version, stream as i16, &execute().into()));
        let bytes = encoder.take();
        let mut decoder = Decoder::server(1 << 24);
        decoder.establish(version, compression);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                decoder.feed(&bytes);
                while let Some(frame) = decoder.next_frame() {
                    let request = decoder.decode_request(&frame.unwrap()).unwrap();
                    let Request::Execute(execute) = &request.request else { unreachable!() };
                    black_box(execute.parameters.values.get(1));
                }
            });
        });
    }
    group.finish();
}

fn encode(criterion: &mut Criterion) {
    let name = |index: usize| Arc::from(format!("field{index}"));
    let column = |index: usize| ColumnSpec {
        keyspace: "ycsb".into(),
        table: "usertable".into(),
        name: name(index),
        cql_type: CqlType::Text,
    };
    let metadata = ResultMetadata::new((0..11).map(column).collect());
    let cells = [[b'x'; 100]; 11];
    let mut group = criterion.benchmark_group("encode a row of 1.1 kB");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, version, compression, no_metadata) in [
        ("v4", Version::V4, None, true),
        ("v4 with metadata", Version::V4, None, false),
        ("v5", Version::V5, None, true),
        ("v5 lz4", Version::V5, Some(Compression::Lz4), true),
    ] {
        let mut encoder = Encoder::server();
        encoder.establish(version, compression);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for stream in 0..BATCH {
                    encoder.append_with(version, stream as i16, Opcode::Result, Flags::NONE, |out| {
                        let header = RowsHeader {
                            metadata: &metadata,
                            no_metadata,
                            new_metadata_id: None,
                            paging_state: None,
                        };
                        let mut writer = RowsWriter::new(out, &header, version);
                        cells.iter().for_each(|cell| writer.cell(Some(cell)));
                        writer.finish(1);
                    });
                }
                let output = encoder.output();
                black_box(output.len());
                output.clear();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
