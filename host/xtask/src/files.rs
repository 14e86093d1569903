//! Paths of the source tree, and a digest over files that says whether a step's inputs changed.

use crate::error::Error;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the source tree.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The target folder, also where `CARGO_TARGET_DIR` moves it.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// A digest over the names and contents of all files under the given paths; build folders are left out.
pub(crate) fn digest(paths: &[PathBuf], extra: &str) -> Result<String, Error> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    hash.update(extra);
    for file in files {
        let bytes = read(&file)?;
        hash.update(file.to_string_lossy().as_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    Ok(hex(&hash.finalize()))
}

/// SHA-256 of one file, in hex.
pub(crate) fn sha256(path: &Path) -> Result<String, Error> {
    Ok(hex(&Sha256::digest(read(path)?)))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::File { what: "read", path: path.to_path_buf(), source })
}

/// Writes aside and renames, so that a stopped run never leaves half a file.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fail = |source| Error::File { what: "write", path: path.to_path_buf(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    let aside = path.with_added_extension("new");
    fs::write(&aside, bytes).map_err(fail)?;
    fs::rename(&aside, path).map_err(fail)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    if path.is_file() {
        files.push(path.to_path_buf());
    } else if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
        let fail = |source| Error::File { what: "list", path: path.to_path_buf(), source };
        for entry in fs::read_dir(path).map_err(fail)? {
            collect(&entry.map_err(fail)?.path(), files)?;
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_follows_names_and_contents() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = [folder.path().to_path_buf()];
        let file = folder.path().join("a");
        write(&file, b"one").expect("written");
        let first = digest(&paths, "x").expect("a digest");
        assert_eq!(digest(&paths, "x").expect("a digest"), first);
        assert_ne!(digest(&paths, "y").expect("a digest"), first);
        write(&file, b"two").expect("written");
        assert_ne!(digest(&paths, "x").expect("a digest"), first);
        write(&folder.path().join("target/b"), b"left out").expect("written");
        write(&file, b"one").expect("written");
        assert_eq!(digest(&paths, "x").expect("a digest"), first);
    }
}
