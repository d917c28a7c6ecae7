//! `compression = {'class': …, 'chunk_length_in_kb': …}`.

use schema::{ChunkLength, CompressionOptions};

use super::super::properties::{double, double_text};
use super::written::Map;
use crate::QueryError;

/// Classes without a dot are here.
const PACKAGE: &str = "org.apache.cassandra.io.compress.";

/// The compressors there are, and the options each understands.
const COMPRESSORS: [(&str, &[&str]); 5] = [
    ("DeflateCompressor", &[]),
    ("LZ4Compressor", &["lz4_compressor_type", "lz4_high_compressor_level"]),
    ("NoopCompressor", &[]),
    ("SnappyCompressor", &[]),
    ("ZstdCompressor", &["compression_level"]),
];

/// The longest chunk: each read of a row decompresses a whole one, and memory holds whole ones.
const CHUNK_KIB_MAX: u32 = 16 << 10;

/// The levels of the Zstandard library.
const ZSTD_LEVELS: std::ops::RangeInclusive<i32> = -131_072..=22;

/// The map as it was written, checked and normalised.
pub(super) fn read(map: &[(&str, &str)]) -> Result<CompressionOptions, QueryError> {
    let mut rest: Map = map.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let is_enabled = rest.get("enabled").is_none_or(|enabled| enabled.eq_ignore_ascii_case("true"));
    if !rest.is_empty() && is_enabled && !rest.contains_key("class") {
        return Err(QueryError::config("Missing sub-option 'class' for the 'compression' option."));
    }
    rest.remove("enabled");
    if !is_enabled && !rest.is_empty() {
        return Err(QueryError::config(
            "If the 'enabled' option is set to false no other options must be specified",
        ));
    }
    let class = rest.remove("class");
    if class.as_ref().is_some_and(String::is_empty) {
        return Err(QueryError::config(
            "The 'class' option must not be empty. To disable compression use 'enabled' : false",
        ));
    }
    let chunk_length = chunk_length(rest.remove("chunk_length_in_kb").as_deref())?;
    let ratio = match rest.remove("min_compress_ratio") {
        None => 0.0,
        Some(text) => {
            double(&text).ok_or_else(|| QueryError::config("Invalid value for min_compress_ratio"))?
        }
    };
    let class = class.map(|class| compressor(&class, &rest)).transpose()?;
    check_ranges(chunk_length, ratio)?;
    if class.is_none() {
        return Ok(CompressionOptions { class, ..CompressionOptions::default() });
    }
    if ratio != 0.0 {
        rest.insert("min_compress_ratio".into(), double_text(ratio));
    }
    Ok(CompressionOptions { class, chunk_length, options: rest })
}

/// A number of KiB, or `auto`, which is ours.
fn chunk_length(text: Option<&str>) -> Result<ChunkLength, QueryError> {
    let Some(text) = text else { return Ok(ChunkLength::Fixed(ChunkLength::DEFAULT_BYTES)) };
    if text.eq_ignore_ascii_case(ChunkLength::AUTO) {
        return Ok(ChunkLength::Auto);
    }
    let number: i32 = text.parse().map_err(|_| QueryError::config("Invalid value for chunk_length_in_kb"))?;
    if number > i32::MAX / 1024 {
        return Err(QueryError::config(format!("Value of chunk_length_in_kb is too large ({number})")));
    }
    match u32::try_from(number) {
        // Told later, as Cassandra does.
        Err(_) => Ok(ChunkLength::Fixed(0)),
        Ok(kilobytes) => Ok(ChunkLength::Fixed(kilobytes * 1024)),
    }
}

/// The full name of a compressor that understands these options.
fn compressor(class: &str, options: &Map) -> Result<String, QueryError> {
    let full = if class.contains('.') { class.to_owned() } else { format!("{PACKAGE}{class}") };
    let short = full.strip_prefix(PACKAGE).unwrap_or_default();
    let Some((_, known)) = COMPRESSORS.iter().find(|(name, _)| *name == short) else {
        return Err(QueryError::config(format!("Could not create Compression for type {full}")));
    };
    check_lz4(short, options)?;
    check_zstd(short, options)?;
    match options.keys().find(|option| !known.contains(&option.as_str())) {
        Some(option) => Err(QueryError::config(format!("Unknown compression options {option}"))),
        None => Ok(full),
    }
}

fn check_lz4(short: &str, options: &Map) -> Result<(), QueryError> {
    if short != "LZ4Compressor" {
        return Ok(());
    }
    if let Some(kind) =
        options.get("lz4_compressor_type").filter(|kind| !matches!(kind.as_str(), "fast" | "high"))
    {
        return Err(QueryError::config(format!(
            "Invalid compressor type '{kind}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options are \
             [high, fast]."
        )));
    }
    let Some(level) = options.get("lz4_high_compressor_level") else { return Ok(()) };
    match level.parse::<i32>() {
        Ok(1..=17) => Ok(()),
        _ => Err(QueryError::config(format!(
            "Invalid value [{level}] for parameter 'lz4_high_compressor_level'. Value must be between 1 and 17."
        ))),
    }
}

fn check_zstd(short: &str, options: &Map) -> Result<(), QueryError> {
    if short != "ZstdCompressor" {
        return Ok(());
    }
    let Some(level) = options.get("compression_level") else { return Ok(()) };
    let problem = match level.parse::<i32>() {
        Ok(level) if ZSTD_LEVELS.contains(&level) => return Ok(()),
        Ok(level) => format!("java.lang.IllegalArgumentException compression_level={level} is invalid"),
        Err(_) => format!("java.lang.NumberFormatException For input string: \"{level}\""),
    };
    Err(QueryError::config(format!("ZstdCompressor.create() threw an error: {problem}")))
}

fn check_ranges(chunk_length: ChunkLength, ratio: f64) -> Result<(), QueryError> {
    let refuse = |message: &str| Err(QueryError::config(message));
    let chunk_bytes = chunk_length.bytes();
    if chunk_bytes == 0 {
        return refuse("Invalid negative or null chunk_length_in_kb");
    }
    if chunk_bytes & (chunk_bytes - 1) != 0 {
        return refuse("chunk_length_in_kb must be a power of 2");
    }
    if chunk_bytes / 1024 > CHUNK_KIB_MAX {
        let kilobytes = chunk_bytes / 1024;
        return refuse(&format!("chunk_length_in_kb must not be above {CHUNK_KIB_MAX}, and is {kilobytes}"));
    }
    let limit = (f64::from(chunk_bytes) / ratio).min(f64::from(i32::MAX)).ceil();
    if limit < 0.0 {
        return refuse("Invalid negative min_compress_ratio");
    }
    if limit > f64::from(chunk_bytes) && limit < f64::from(i32::MAX) {
        return refuse("min_compress_ratio can either be 0 or greater than or equal to 1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(map: &[(&str, &str)]) -> String {
        read(map).expect_err("refused").to_string()
    }

    #[test]
    fn compression_is_kept_with_its_full_class_and_no_defaults() {
        let read =
            read(&[("class", "ZstdCompressor"), ("compression_level", "5"), ("min_compress_ratio", "2")]);
        let expected = CompressionOptions {
            class: Some("org.apache.cassandra.io.compress.ZstdCompressor".into()),
            chunk_length: ChunkLength::Fixed(16384),
            options: [("compression_level".into(), "5".into()), ("min_compress_ratio".into(), "2.0".into())]
                .into(),
        };
        assert_eq!(read, Ok(expected));
    }

    #[test]
    fn an_empty_map_and_enabled_false_are_no_compression() {
        for map in [&[][..], &[("enabled", "false")], &[("enabled", "no")]] {
            assert_eq!(read(map).map(|options| options.class), Ok(None));
        }
    }

    #[test]
    fn auto_is_a_chunk_length_and_other_words_are_not() {
        let of = |text| read(&[("class", "LZ4Compressor"), ("chunk_length_in_kb", text)]);
        for text in ["auto", "AUTO"] {
            assert_eq!(of(text).map(|options| options.chunk_length), Ok(ChunkLength::Auto));
        }
        assert_eq!(of("64").map(|options| options.chunk_length), Ok(ChunkLength::Fixed(65536)));
        let refused = of("automatic").expect_err("refused").to_string();
        assert_eq!(refused, "Invalid value for chunk_length_in_kb");
    }

    #[test]
    fn old_spellings_are_refused() {
        assert_eq!(
            refusal(&[("sstable_compression", "LZ4Compressor")]),
            "Missing sub-option 'class' for the 'compression' option."
        );
        assert_eq!(
            refusal(&[("class", "LZ4Compressor"), ("chunk_length_kb", "16")]),
            "Unknown compression options chunk_length_kb"
        );
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let with = |name, value| refusal(&[("class", "LZ4Compressor"), (name, value)]);
        assert_eq!(with("chunk_length_in_kb", "-4"), "Invalid negative or null chunk_length_in_kb");
        assert_eq!(
            with("chunk_length_in_kb", "2097152"),
            "Value of chunk_length_in_kb is too large (2097152)"
        );
        assert_eq!(
            with("chunk_length_in_kb", "32768"),
            "chunk_length_in_kb must not be above 16384, and is 32768"
        );
        let longest = read(&[("class", "LZ4Compressor"), ("chunk_length_in_kb", "16384")]);
        assert_eq!(longest.map(|options| options.chunk_length), Ok(ChunkLength::Fixed(16 << 20)));
        assert_eq!(with("min_compress_ratio", "-1"), "Invalid negative min_compress_ratio");
    }
}
