//! Published traces: which there are, where they are kept, and downloading them.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::output;

const TABLE: &str = include_str!("../assets/traces.toml");
/// Connecting and waiting for an answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A whole download; the largest file has 3.4 MB.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(300);

/// One published file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) about: String,
    /// Value of `--format` that reads it.
    pub(crate) format: String,
    pub(crate) url: String,
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
    pub(crate) licence: String,
    /// Path below `CORETUNER_DATA`.
    pub(crate) local: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    trace: Vec<Published>,
}

/// Why a trace was not fetched.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum FetchError {
    #[error("no published trace is named `{name}`")]
    #[diagnostic(help("`coretuner trace fetch` without a name lists them"))]
    Unknown { name: String },
    #[error("no folder to keep traces in: neither CORETUNER_CACHE_DIR nor XDG_CACHE_HOME nor HOME is set")]
    #[diagnostic(help("name one with --cache-dir"))]
    NoCache,
    #[error("cannot create the trace cache {}: {source}", path.display())]
    CreateCache { path: PathBuf, source: io::Error },
    #[error("{url} answered with status {status}")]
    #[diagnostic(help(
        "the file may have moved: fetch it from another home with --from URL, its digest is checked all the same"
    ))]
    Status { url: String, status: u16 },
    #[error("cannot reach {url}: {reason}")]
    #[diagnostic(help(
        "is this machine online? Otherwise fetch the file elsewhere and give its path to --trace, or use --from URL"
    ))]
    Unreachable { url: String, reason: String },
    #[error("the download from {url} broke off after {got} of {expected} bytes: {reason}")]
    #[diagnostic(help("try again; nothing was kept"))]
    BrokenOff { url: String, got: u64, expected: u64, reason: String },
    #[error("{url} has {got} bytes or more, {expected} are published")]
    #[diagnostic(help("nothing was kept; this is another version or another file"))]
    TooLong { url: String, got: u64, expected: u64 },
    #[error("{url} does not have the published content: sha256 {got}, expected {expected}")]
    #[diagnostic(help("nothing was kept; this is another version or another file"))]
    Digest { url: String, got: String, expected: String },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl FetchError {
    /// Whether the user named something wrong, rather than the world failing.
    pub(crate) fn is_input(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

/// The published traces, in the order of the table.
pub(crate) fn published() -> &'static [Published] {
    static TRACES: OnceLock<Vec<Published>> = OnceLock::new();
    // The table is compiled in; a test reads it and counts its rows.
    TRACES.get_or_init(|| toml::from_str::<Table>(TABLE).map(|table| table.trace).unwrap_or_default())
}

/// The published trace of that name.
pub(crate) fn find(name: &str) -> Result<&'static Published, FetchError> {
    let found = published().iter().find(|trace| trace.name == name);
    found.ok_or_else(|| FetchError::Unknown { name: name.to_owned() })
}

/// The folder of fetched traces: the given one, or `coretuner/traces` in the user's cache.
pub(crate) fn cache_folder(given: Option<&Path>) -> Result<PathBuf, FetchError> {
    let from_env = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    given
        .map(Path::to_owned)
        .or_else(|| from_env("XDG_CACHE_HOME").map(|folder| folder.join("coretuner/traces")))
        .or_else(|| from_env("HOME").map(|folder| folder.join(".cache/coretuner/traces")))
        .ok_or(FetchError::NoCache)
}

/// Where a trace may lie already: below `CORETUNER_DATA`, or in the cache.
pub(crate) fn places(trace: &Published, cache: Option<&Path>) -> Vec<PathBuf> {
    let data = std::env::var_os("CORETUNER_DATA").map(|folder| PathBuf::from(folder).join(&trace.local));
    let cached = cache_folder(cache).ok().map(|folder| folder.join(file_name(trace)));
    data.into_iter().chain(cached).collect()
}

/// The first of those places that has a file.
pub(crate) fn present(trace: &Published, cache: Option<&Path>) -> Option<PathBuf> {
    places(trace, cache).into_iter().find(|path| path.is_file())
}

/// Downloads a trace into the cache, unless its right content lies there already. Gives the path and whether it was new.
pub(crate) fn fetch(trace: &Published, from: Option<&str>, cache: &Path) -> Result<(PathBuf, bool), FetchError> {
    let path = cache.join(file_name(trace));
    if has_digest(&path, &trace.sha256) {
        return Ok((path, false));
    }
    std::fs::create_dir_all(cache).map_err(|source| FetchError::CreateCache { path: cache.to_owned(), source })?;
    let url = from.unwrap_or(&trace.url);
    let mut body = open(url)?;
    let failed = |source| FetchError::Write { path: path.clone(), source };
    let mut file = output::new_file(cache).map_err(failed)?;
    let digest = copy(url, trace, &mut body, file.as_file_mut(), &path)?;
    if digest != trace.sha256 {
        return Err(FetchError::Digest { url: url.to_owned(), got: digest, expected: trace.sha256.clone() });
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    Ok((path, true))
}

fn open(url: &str) -> Result<impl Read + use<>, FetchError> {
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(TOTAL_TIMEOUT))
        .http_status_as_error(false)
        .build();
    let unreachable = |error: ureq::Error| FetchError::Unreachable { url: url.to_owned(), reason: error.to_string() };
    let answer = ureq::Agent::new_with_config(config).get(url).call().map_err(unreachable)?;
    let status = answer.status().as_u16();
    if status != 200 {
        return Err(FetchError::Status { url: url.to_owned(), status });
    }
    Ok(answer.into_body().into_reader())
}

/// Copies at most one byte more than published; gives the digest in hex.
fn copy(
    url: &str,
    trace: &Published,
    body: &mut impl Read,
    file: &mut impl Write,
    path: &Path,
) -> Result<String, FetchError> {
    let mut hasher = Sha256::new();
    let mut got = 0u64;
    let mut buffer = vec![0u8; 64 * 1024];
    let broken =
        |got, reason: String| FetchError::BrokenOff { url: url.to_owned(), got, expected: trace.bytes, reason };
    loop {
        let read = body.read(&mut buffer).map_err(|error| broken(got, error.to_string()))?;
        let Some(part) = buffer.get(..read).filter(|part| !part.is_empty()) else { break };
        got += read as u64;
        if got > trace.bytes {
            return Err(FetchError::TooLong { url: url.to_owned(), got, expected: trace.bytes });
        }
        hasher.update(part);
        file.write_all(part).map_err(|source| FetchError::Write { path: path.to_owned(), source })?;
    }
    if got < trace.bytes {
        return Err(broken(got, "the file ended early".to_owned()));
    }
    Ok(hex(&hasher.finalize()))
}

fn has_digest(path: &Path, sha256: &str) -> bool {
    std::fs::read(path).is_ok_and(|bytes| hex(&Sha256::digest(&bytes)) == sha256)
}

fn file_name(trace: &Published) -> String {
    let end = Path::new(&trace.local).extension().map(|end| end.to_string_lossy().into_owned());
    format!("{}.{}", trace.name, end.unwrap_or_else(|| "csv".to_owned()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert_eq!(published().len(), TABLE.matches("[[trace]]").count());
        assert!(!published().is_empty());
        let mut names: Vec<&str> = published().iter().map(|trace| trace.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), published().len());
        for trace in published() {
            assert_eq!(trace.sha256.len(), 64, "{}", trace.name);
            assert!(
                trace.url.starts_with("https://") && trace.bytes > 0 && !trace.licence.is_empty(),
                "{}",
                trace.name
            );
        }
    }

    #[test]
    fn writes_hex() {
        assert_eq!(hex(&[0, 15, 255]), "000fff");
        assert_eq!(hex(&Sha256::digest(b"")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn unknown_names_are_the_users_mistake() {
        assert!(find("nothing").unwrap_err().is_input());
        assert_eq!(find("philly").unwrap().format, "philly");
    }
}
