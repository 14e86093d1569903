//! Compiled code on disk.
//!
//! Key: everything that the code depends on. Entry: magic, digest of the code, code. A bad entry is a miss: it is deleted
//! and made anew. A directory that cannot be used makes a cache that does nothing, and says so in the log.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use wasmtime::component::Component;

use crate::code::{self, OwnCode};
use crate::engine::PolicyEngine;

const MAGIC: &[u8] = b"coretuner-code-1\n";
const SUFFIX: &str = "cwasm";

/// A folder of compiled components.
#[derive(Clone, Debug)]
pub struct CodeCache {
    folder: Option<PathBuf>,
}

/// Where a component's code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheOutcome {
    /// Read from the cache.
    Hit,
    /// Compiled, then written to the cache.
    Miss,
    /// An entry was there but damaged or not for this host: deleted, compiled, written.
    Replaced,
    /// Compiled; there is no usable cache.
    Unused,
}

impl CodeCache {
    /// Compiles every time.
    pub fn disabled() -> Self {
        Self { folder: None }
    }

    /// Uses `folder`, made with mode 0700 when absent. A folder that cannot be made, or that others can write, is not
    /// used: compiled code is code.
    pub fn open(folder: &Path) -> Self {
        match prepare(folder) {
            Ok(()) => Self { folder: Some(folder.to_owned()) },
            Err(error) => {
                tracing::warn!(folder = %folder.display(), "compiled code is not cached: {error}");
                Self::disabled()
            }
        }
    }

    /// Where entries are kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The component of `bytes`, from the cache or compiled now.
    pub(crate) fn component(
        &self,
        engine: &PolicyEngine,
        bytes: &[u8],
        digest: &blake3::Hash,
    ) -> wasmtime::Result<(Component, CacheOutcome)> {
        let Some(folder) = &self.folder else {
            return Ok((Component::from_binary(engine.wasm(), bytes)?, CacheOutcome::Unused));
        };
        let path = folder.join(format!("{}.{SUFFIX}", key(engine, digest).to_hex()));
        let outcome = match read(engine, &path) {
            Ok(component) => return Ok((component, CacheOutcome::Hit)),
            Err(EntryError::Absent) => CacheOutcome::Miss,
            Err(EntryError::Bad(reason)) => {
                tracing::warn!(entry = %path.display(), "cached code is not usable and is made anew: {reason}");
                let _ = fs::remove_file(&path);
                CacheOutcome::Replaced
            }
        };
        let component = Component::from_binary(engine.wasm(), bytes)?;
        match write(folder, &path, &component.serialize()?) {
            Ok(()) => {
                evict(folder, engine.limits().code_cache_bytes, &path);
                Ok((component, outcome))
            }
            Err(error) => {
                tracing::warn!(folder = %folder.display(), "compiled code is not cached: {error}");
                Ok((component, CacheOutcome::Unused))
            }
        }
    }
}

enum EntryError {
    Absent,
    Bad(String),
}

/// Digest of all that compiled code depends on.
fn key(engine: &PolicyEngine, component: &blake3::Hash) -> blake3::Hash {
    let mut hasher = KeyHasher(blake3::Hasher::new());
    hasher.write(MAGIC);
    hasher.write(component.as_bytes());
    engine.wasm().precompile_compatibility_hash().hash(&mut hasher);
    for text in [engine.code_identity().as_str(), std::env::consts::ARCH, std::env::consts::OS] {
        hasher.write(text.as_bytes());
        hasher.write(&[0]);
    }
    hasher.0.finalize()
}

/// Feeds whatever hashes itself into BLAKE3.
struct KeyHasher(blake3::Hasher);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.finalize();
        digest.as_bytes().iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}

fn read(engine: &PolicyEngine, path: &Path) -> Result<Component, EntryError> {
    let entry = match fs::read(path) {
        Ok(entry) => entry,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(EntryError::Absent),
        Err(error) => return Err(EntryError::Bad(error.to_string())),
    };
    let code = checked(&entry).ok_or_else(|| EntryError::Bad("it is truncated or damaged".into()))?;
    code::load(engine.wasm(), &code).map_err(|error| EntryError::Bad(format!("{error:#}")))
}

/// The code of an entry whose digest agrees.
fn checked(entry: &[u8]) -> Option<OwnCode<'_>> {
    let rest = entry.strip_prefix(MAGIC)?;
    let (digest, code) = rest.split_at_checked(blake3::OUT_LEN)?;
    (blake3::hash(code).as_bytes().as_slice() == digest).then(|| OwnCode::verified(code))
}

/// Writes a temporary file and renames it: a reader sees a whole entry or none, and a mapped file is never overwritten.
fn write(folder: &Path, path: &Path, code: &[u8]) -> io::Result<()> {
    let temporary = folder.join(temporary_name(path));
    let written = (|| {
        let mut file = private_file(&temporary)?;
        file.write_all(MAGIC)?;
        file.write_all(blake3::hash(code).as_bytes())?;
        file.write_all(code)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Unique among the threads of all processes of this user.
fn temporary_name(path: &Path) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    format!(".{stem}.{}.{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Deletes the oldest entries until the folder holds at most `limit` bytes; `keep` stays.
fn evict(folder: &Path, limit: u64, keep: &Path) {
    let Ok(list) = fs::read_dir(folder) else { return };
    let mut entries: Vec<(SystemTime, PathBuf, u64)> = list
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let meta = entry.metadata().ok()?;
            let path = entry.path();
            path.extension().is_some_and(|ext| ext == SUFFIX).then_some((meta.modified().ok()?, path, meta.len()))
        })
        .collect();
    entries.sort();
    let mut total: u64 = entries.iter().map(|(_, _, bytes)| bytes).sum();
    for (_, path, bytes) in entries.iter().filter(|(_, path, _)| path != keep) {
        if total <= limit {
            return;
        }
        if fs::remove_file(path).is_ok() {
            total -= bytes;
        }
    }
}

#[cfg(unix)]
fn prepare(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    if !folder.exists() {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent)?;
        }
        match fs::DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let meta = fs::metadata(folder)?;
    if !meta.is_dir() {
        return Err(io::Error::other("it is not a directory"));
    }
    if meta.mode() & 0o077 != 0 {
        let mode = meta.mode() & 0o777;
        return Err(io::Error::other(format!("others may enter it (mode {mode:03o}); run chmod 700 on it")));
    }
    // The file system says who we are without a call into libc.
    let own = fs::metadata("/proc/self").map(|me| me.uid() == meta.uid()).unwrap_or(true);
    if own { Ok(()) } else { Err(io::Error::other("it belongs to another user")) }
}

#[cfg(not(unix))]
fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(unix)]
fn private_file(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn private_file(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Mode;
    use crate::limits::Limits;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn outcome(cache: &CodeCache, engine: &PolicyEngine) -> CacheOutcome {
        cache.component(engine, EMPTY, &blake3::hash(EMPTY)).unwrap().1
    }

    fn setup() -> (tempfile::TempDir, CodeCache, PolicyEngine) {
        let folder = tempfile::tempdir().unwrap();
        let cache = CodeCache::open(&folder.path().join("code"));
        (folder, cache, PolicyEngine::new(Mode::Metered, Limits::default()).unwrap())
    }

    fn only_entry(cache: &CodeCache) -> PathBuf {
        let mut list: Vec<_> =
            fs::read_dir(cache.folder().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(list.len(), 1, "{list:?}");
        list.remove(0)
    }

    #[test]
    fn a_second_load_hits() {
        let (_folder, cache, engine) = setup();
        assert_eq!(outcome(&cache, &engine), CacheOutcome::Miss);
        assert_eq!(outcome(&cache, &engine), CacheOutcome::Hit);
    }

    #[test]
    fn a_damaged_entry_is_a_miss_and_is_replaced() {
        let check = |damage: &dyn Fn(&mut Vec<u8>)| {
            let (_folder, cache, engine) = setup();
            assert_eq!(outcome(&cache, &engine), CacheOutcome::Miss);
            let entry = only_entry(&cache);
            let mut bytes = fs::read(&entry).unwrap();
            damage(&mut bytes);
            fs::write(&entry, bytes).unwrap();
            assert_eq!(outcome(&cache, &engine), CacheOutcome::Replaced);
            assert_eq!(outcome(&cache, &engine), CacheOutcome::Hit);
        };
        check(&|bytes| bytes.truncate(bytes.len() / 2));
        check(&|bytes| bytes.truncate(10));
        check(&|bytes| bytes.clear());
        check(&|bytes| *bytes.last_mut().unwrap() ^= 1);
        check(&|bytes| bytes[MAGIC.len()] ^= 1);
        // Whole, with an agreeing digest, but not code.
        check(&|bytes| {
            bytes.truncate(MAGIC.len());
            bytes.extend_from_slice(blake3::hash(b"garbage").as_bytes());
            bytes.extend_from_slice(b"garbage");
        });
    }

    #[test]
    fn engines_of_other_settings_have_other_keys() {
        let digest = blake3::hash(EMPTY);
        let metered = PolicyEngine::new(Mode::Metered, Limits::default()).unwrap();
        let production = PolicyEngine::new(Mode::Production, Limits::default()).unwrap();
        assert_ne!(key(&metered, &digest), key(&production, &digest));
        assert_ne!(key(&metered, &digest), key(&metered, &blake3::hash(b"")));
        assert_eq!(key(&metered, &digest), key(&metered, &digest));
    }

    #[test]
    fn an_unusable_folder_works_without_caching() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let engine = PolicyEngine::new(Mode::Metered, Limits::default()).unwrap();
        assert_eq!(outcome(&CodeCache::open(&file.join("code")), &engine), CacheOutcome::Unused);
        // The folder vanishes after it was opened.
        let cache = CodeCache::open(&folder.path().join("code"));
        fs::remove_dir(cache.folder().unwrap()).unwrap();
        assert_eq!(outcome(&cache, &engine), CacheOutcome::Unused);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_open_to_others_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
        assert!(CodeCache::open(folder.path()).folder().is_none());
        let (_parent, cache, _) = setup();
        assert_eq!(fs::metadata(cache.folder().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn the_oldest_entries_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let entry = |name: &str, written_s: u64| {
            let path = folder.path().join(format!("{name}.{SUFFIX}"));
            fs::write(&path, [0; 100]).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(written_s);
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let (old, middle, new) = (entry("old", 100), entry("middle", 200), entry("new", 300));
        evict(folder.path(), 250, &new);
        assert!(!old.exists() && middle.exists() && new.exists());
        evict(folder.path(), 0, &new);
        assert!(!middle.exists() && new.exists());
    }
}
