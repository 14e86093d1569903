//! Opening trace files: plain or gzip, streamed, and their digest.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::TraceError;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Opens `path` for reading; gzip is recognised by content.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, TraceError> {
    let file = File::open(path).map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let start = reader.fill_buf().map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
    if start.starts_with(&GZIP_MAGIC) {
        Ok(Box::new(BufReader::new(MultiGzDecoder::new(reader))))
    } else {
        Ok(Box::new(reader))
    }
}

/// The first `bytes` of the (unpacked) text.
pub(crate) fn head(path: &Path, bytes: u64) -> Result<String, TraceError> {
    let mut head = Vec::new();
    let read = open(path)?.take(bytes).read_to_end(&mut head);
    read.map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The whole (unpacked) text; for small files.
pub(crate) fn text(path: &Path) -> Result<String, TraceError> {
    let mut text = String::new();
    let read = open(path)?.read_to_string(&mut text);
    read.map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
    Ok(text)
}

/// `blake3:` digest of the bytes of `paths`, in this order.
pub(crate) fn digest(paths: &[&Path]) -> Result<String, TraceError> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    for path in paths {
        let mut file = File::open(path).map_err(|source| TraceError::Open { path: (*path).to_owned(), source })?;
        loop {
            let read = file.read(&mut buffer);
            let count = read.map_err(|source| TraceError::Read { path: (*path).to_owned(), source })?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
        }
    }
    Ok(format!("blake3:{}", hasher.finalize().to_hex()))
}
