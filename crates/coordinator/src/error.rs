//! Why a request could not be carried out.

/// What went wrong, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CoordinatorError {
    #[error("overloaded: {what}")]
    Overloaded { what: &'static str },
    #[error("the schema moved on from epoch {based_on} to {current}")]
    SchemaMoved { based_on: u64, current: u64 },
    #[error("change schema: {0}")]
    Schema(#[from] schema::SchemaError),
    #[error("cannot achieve consistency level {consistency}: {required} required, {alive} alive")]
    Unavailable { consistency: &'static str, required: u32, alive: u32 },
    #[error("the mutation of {mutation_bytes} bytes is larger than the {mutation_bytes_max} allowed")]
    MutationTooLarge { mutation_bytes: usize, mutation_bytes_max: usize },
    #[error("{0}")]
    Storage(String),
    #[error("the node is shutting down")]
    ShuttingDown,
}
