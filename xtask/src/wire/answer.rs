//! What a server may answer, parsed from a frame's body.

use super::WireError;
use super::value::Type;

/// A frame's body with what its flags announce.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) warnings: Vec<String>,
    pub(crate) answer: Answer,
}

/// The body of one response.
#[derive(Debug)]
pub(crate) enum Answer {
    Ready,
    Supported,
    Error { code: u32, message: String, detail: String },
    Void,
    Rows(Rows),
    SetKeyspace(String),
    Prepared(Prepared),
    SchemaChange { change: String, target: String, name: String },
}

/// Rows with the columns as the server described them.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) metadata: Metadata,
    pub(crate) rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// An answer to PREPARE.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) id: Vec<u8>,
    pub(crate) result_id: Vec<u8>,
    pub(crate) partition_key_indexes: Vec<u16>,
    pub(crate) binds: Metadata,
    pub(crate) result: Metadata,
}

/// Column specs, and where the next page starts.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) columns: Vec<Column>,
    pub(crate) paging_state: Option<Vec<u8>>,
}

/// One column as the server names it.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) kind: Type,
}

/// A cursor over a body; every read is checked.
pub(crate) struct Body<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Body<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Body<'a> {
        Body { bytes, offset: 0 }
    }

    pub(crate) fn take(&mut self, wanted: usize) -> Result<&'a [u8], WireError> {
        let end = self.offset.checked_add(wanted).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            return Err(WireError::Short { wanted, offset: self.offset, length: self.bytes.len() });
        };
        let taken = &self.bytes[self.offset..end];
        self.offset = end;
        Ok(taken)
    }

    pub(crate) fn short(&mut self) -> Result<u16, WireError> {
        let b = self.take(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    pub(crate) fn int(&mut self) -> Result<i32, WireError> {
        let b = self.take(4)?;
        Ok(i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    pub(crate) fn string(&mut self) -> Result<String, WireError> {
        let length = usize::from(self.short()?);
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }

    fn strings(&mut self) -> Result<Vec<String>, WireError> {
        let count = self.short()?;
        (0..count).map(|_| self.string()).collect()
    }

    fn short_bytes(&mut self) -> Result<Vec<u8>, WireError> {
        let length = usize::from(self.short()?);
        Ok(self.take(length)?.to_vec())
    }

    pub(crate) fn value(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        match usize::try_from(self.int()?) {
            Ok(length) => Ok(Some(self.take(length)?.to_vec())),
            Err(_) => Ok(None),
        }
    }

    fn kind(&mut self) -> Result<Type, WireError> {
        Ok(match self.short()? {
            0x00 => Type::Custom(self.string()?),
            0x20 => Type::List(Box::new(self.kind()?)),
            0x21 => Type::Map(Box::new(self.kind()?), Box::new(self.kind()?)),
            0x22 => Type::Set(Box::new(self.kind()?)),
            0x30 => {
                let (keyspace, name, count) = (self.string()?, self.string()?, self.short()?);
                let fields = (0..count).map(|_| Ok((self.string()?, self.kind()?)));
                Type::User(format!("{keyspace}.{name}"), fields.collect::<Result<_, WireError>>()?)
            }
            0x31 => {
                let count = self.short()?;
                Type::Tuple((0..count).map(|_| self.kind()).collect::<Result<_, _>>()?)
            }
            code => Type::Native(code),
        })
    }

    fn metadata(&mut self, version: u8, for_binds: bool) -> Result<(Metadata, Vec<u16>), WireError> {
        let flags = self.int()?;
        let count = self.int()?;
        let mut indexes = Vec::new();
        if for_binds && version >= 4 {
            let index_count = self.int()?;
            indexes = (0..index_count).map(|_| self.short()).collect::<Result<_, _>>()?;
        }
        let mut metadata = Metadata::default();
        if flags & 0x02 != 0 {
            metadata.paging_state = self.value()?;
        }
        if !for_binds && flags & 0x08 != 0 {
            self.short_bytes()?;
        }
        if flags & 0x04 != 0 {
            return Ok((metadata, indexes));
        }
        let global = match flags & 0x01 {
            0 => None,
            _ => Some(format!("{}.{}", self.string()?, self.string()?)),
        };
        for _ in 0..count {
            let table = match &global {
                Some(table) => table.clone(),
                None => format!("{}.{}", self.string()?, self.string()?),
            };
            let (name, kind) = (self.string()?, self.kind()?);
            metadata.columns.push(Column { table, name, kind });
        }
        Ok((metadata, indexes))
    }
}

/// Parses a response; `flags` are those of the frame's header.
pub(crate) fn parse(version: u8, flags: u8, opcode: u8, body: &[u8]) -> Result<Response, WireError> {
    let mut body = Body::new(body);
    if flags & 0x02 != 0 {
        body.take(16)?;
    }
    let warnings = if flags & 0x08 != 0 { body.strings()? } else { Vec::new() };
    if flags & 0x04 != 0 {
        let count = body.short()?;
        for _ in 0..count {
            body.string()?;
            body.value()?;
        }
    }
    let answer = match opcode {
        0x00 => parse_error(&mut body, version)?,
        0x02 => Answer::Ready,
        0x06 => Answer::Supported,
        0x08 => parse_result(version, &mut body)?,
        other => return Err(WireError::Unknown { what: "opcode", got: i64::from(other) }),
    };
    Ok(Response { warnings, answer })
}

fn parse_error(body: &mut Body<'_>, version: u8) -> Result<Answer, WireError> {
    let code = body.int()?.cast_unsigned();
    let message = body.string()?;
    let detail = match code {
        0x2400 => format!(" [{}.{}]", body.string()?, body.string()?),
        0x1000 => format!(" [consistency {} required {} alive {}]", body.short()?, body.int()?, body.int()?),
        0x1100 | 0x1200 | 0x1300 | 0x1500 | 0x1700 => parse_missed(body, version, code)?,
        _ => String::new(),
    };
    Ok(Answer::Error { code, message, detail })
}

/// Of a request that too few replicas have answered.
fn parse_missed(body: &mut Body<'_>, version: u8, code: u32) -> Result<String, WireError> {
    let mut detail =
        format!(" [consistency {} received {} required {}", body.short()?, body.int()?, body.int()?);
    if matches!(code, 0x1300 | 0x1500) {
        let failed_count = body.int()?;
        detail.push_str(&format!(" failed {failed_count}"));
        for _ in 0..if version >= 5 { failed_count } else { 0 } {
            let address_bytes = body.take(1)?[0];
            body.take(address_bytes.into())?;
            detail.push_str(&format!(" because {}", body.short()?));
        }
    }
    match code {
        0x1200 | 0x1300 => detail.push_str(&format!(" data {}", body.take(1)?[0])),
        0x1100 | 0x1500 => {
            let write_type = body.string()?;
            detail.push_str(&format!(" {write_type}"));
            if version >= 5 && code == 0x1100 && write_type == "CAS" {
                detail.push_str(&format!(" contentions {}", body.short()?));
            }
        }
        _ => {}
    }
    detail.push(']');
    Ok(detail)
}

fn parse_result(version: u8, body: &mut Body<'_>) -> Result<Answer, WireError> {
    Ok(match body.int()? {
        1 => Answer::Void,
        2 => {
            let (metadata, _) = body.metadata(version, false)?;
            let count = body.int()?;
            let width = metadata.columns.len();
            let rows = (0..count).map(|_| (0..width).map(|_| body.value()).collect());
            let rows = rows.collect::<Result<_, WireError>>()?;
            Answer::Rows(Rows { metadata, rows })
        }
        3 => Answer::SetKeyspace(body.string()?),
        4 => {
            let id = body.short_bytes()?;
            let result_id = if version >= 5 { body.short_bytes()? } else { Vec::new() };
            let (binds, partition_key_indexes) = body.metadata(version, true)?;
            let (result, _) = body.metadata(version, false)?;
            Answer::Prepared(Prepared { id, result_id, partition_key_indexes, binds, result })
        }
        5 => {
            let (change, target, keyspace) = (body.string()?, body.string()?, body.string()?);
            let name = match target.as_str() {
                "KEYSPACE" => keyspace,
                "FUNCTION" | "AGGREGATE" => {
                    format!("{keyspace}.{}({})", body.string()?, body.strings()?.join(", "))
                }
                _ => format!("{keyspace}.{}", body.string()?),
            };
            Answer::SchemaChange { change, target, name }
        }
        other => return Err(WireError::Unknown { what: "result kind", got: i64::from(other) }),
    })
}
