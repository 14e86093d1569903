//! Downloads over HTTPS for machines without pip: one file of the Python package index.

use crate::error::Error;
use crate::files;
use std::path::Path;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// The index that pip uses when nothing else is said.
const INDEX: &str = "https://pypi.org/simple";

/// The distribution's certificates; without this file the ones built into the program serve.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Largest file accepted, in bytes.
const BYTES_MAX: u64 = 512 << 20;

/// Where the index keeps a file of a project.
pub(crate) fn file_url(project: &str, file: &str) -> Result<String, Error> {
    let index = std::env::var("PIP_INDEX_URL").unwrap_or_else(|_| INDEX.to_owned());
    let page = format!("{}/{project}/", index.trim_end_matches('/'));
    let request = agent().get(&page).header("Accept", "application/vnd.pypi.simple.v1+json");
    let mut answer = request.call().map_err(|error| failed(&page, &error))?;
    let text = answer.body_mut().read_to_string().map_err(|error| failed(&page, &error))?;
    find_url(&text, file).ok_or_else(|| Error::Output {
        command: format!("GET {page}"),
        detail: format!("no complete address of {file} in it"),
    })
}

/// Downloads an address into a file.
pub(crate) fn to_file(url: &str, path: &Path) -> Result<(), Error> {
    let mut answer = agent().get(url).call().map_err(|error| failed(url, &error))?;
    let body = answer.body_mut().with_config().limit(BYTES_MAX);
    let bytes = body.read_to_vec().map_err(|error| failed(url, &error))?;
    files::write(path, &bytes)
}

fn agent() -> Agent {
    let tls = TlsConfig::builder().root_certs(certificates()).build();
    let config = Agent::config_builder().tls_config(tls).timeout_connect(Some(Duration::from_secs(30)));
    config.timeout_global(Some(Duration::from_secs(600))).build().into()
}

fn certificates() -> RootCerts {
    let file = std::env::var("SSL_CERT_FILE").unwrap_or_else(|_| CERTIFICATES.to_owned());
    let text = std::fs::read(file).unwrap_or_default();
    let items = parse_pem(&text).flatten();
    let found: Vec<_> = items
        .filter_map(|item| if let PemItem::Certificate(certificate) = item { Some(certificate) } else { None })
        .collect();
    if found.is_empty() { RootCerts::WebPki } else { RootCerts::from(found.into_iter()) }
}

/// The address of a file on an index page (JSON form of the simple repository API).
fn find_url(page: &str, file: &str) -> Option<String> {
    let page: serde_json::Value = serde_json::from_str(page).ok()?;
    let entry = page["files"].as_array()?.iter().find(|entry| entry["filename"] == file)?;
    let url = entry["url"].as_str()?;
    url.starts_with("http").then(|| url.to_owned())
}

fn failed(url: &str, error: &ureq::Error) -> Error {
    Error::Failed { command: format!("GET {url}"), status: error.to_string(), output: String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_address_on_a_page() {
        let page = r#"{"files": [
            {"filename": "a.whl", "url": "https://files.example/a.whl"},
            {"filename": "b.whl", "url": "https://files.example/b.whl"}]}"#;
        assert_eq!(find_url(page, "b.whl").as_deref(), Some("https://files.example/b.whl"));
        assert_eq!(find_url(page, "c.whl"), None);
        assert_eq!(find_url("<html>", "a.whl"), None);
    }
}
