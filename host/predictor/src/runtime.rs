//! Finds and loads the ONNX Runtime library, once per process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

/// Names the library file when it lies elsewhere.
const ENV_PATH: &str = "ORT_DYLIB_PATH";
/// Folder of the library beside the executable or up to two levels above it.
const FOLDER: &str = "onnxruntime";
const HINT: &str = "run `cargo xtask onnxruntime`, or set ORT_DYLIB_PATH to the library file";

static LOADED: Mutex<Option<OnnxRuntime>> = Mutex::new(None);

/// The loaded library and its one environment. Cheap to clone; the first load decides for the whole process.
#[derive(Clone, Debug)]
pub struct OnnxRuntime {
    environment: Environment,
    library: PathBuf,
    version: String,
}

/// The library could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("no ONNX Runtime library found; looked for {}; {HINT}", list(.tried))]
    NotFound { tried: Vec<PathBuf> },
    #[error("ONNX Runtime library {} does not load: {reason}; {HINT}", .path.display())]
    Load { path: PathBuf, reason: String },
    #[error("ONNX Runtime from {} does not start: {reason}", .path.display())]
    Start { path: PathBuf, reason: String },
    #[error("ONNX Runtime {} is already loaded; {} needs another process", .loaded.display(), .asked.display())]
    AlreadyLoaded { loaded: PathBuf, asked: PathBuf },
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}

impl OnnxRuntime {
    /// Loads `path` (a file, or a folder that holds the library); without one the file named by `ORT_DYLIB_PATH`, else
    /// the first `onnxruntime` folder beside the executable or up to two levels above it.
    pub fn load(path: Option<&Path>) -> Result<Self, RuntimeError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = loaded.as_ref() {
            return match path.map(|p| resolve(p).unwrap_or_else(|| p.to_path_buf())) {
                Some(asked) if asked != runtime.library => {
                    Err(RuntimeError::AlreadyLoaded { loaded: runtime.library.clone(), asked })
                }
                _ => Ok(runtime.clone()),
            };
        }
        let runtime = start(find(path)?)?;
        *loaded = Some(runtime.clone());
        Ok(runtime)
    }

    /// For example `1.31.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The library file.
    pub fn library(&self) -> &Path {
        &self.library
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }
}

/// The library that `load` would take.
fn find(path: Option<&Path>) -> Result<PathBuf, RuntimeError> {
    let named =
        path.map(Path::to_path_buf).or_else(|| std::env::var_os(ENV_PATH).filter(|v| !v.is_empty()).map(PathBuf::from));
    let candidates = named.map_or_else(folders, |one| vec![one]);
    candidates.iter().find_map(|c| resolve(c)).ok_or(RuntimeError::NotFound { tried: candidates })
}

/// `onnxruntime` folders near the executable, nearest first: installed, from `target/<profile>`, from its `deps`.
fn folders() -> Vec<PathBuf> {
    let executable = std::env::current_exe().unwrap_or_default();
    executable.ancestors().skip(1).take(3).map(|dir| dir.join(FOLDER)).collect()
}

/// The library file that `candidate` names: itself, or the newest in that folder.
fn resolve(candidate: &Path) -> Option<PathBuf> {
    let candidate = std::path::absolute(candidate).ok()?;
    if candidate.is_file() {
        return Some(candidate);
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(&candidate).ok()?.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| is_library(path) && path.is_file());
    found.sort_by_key(|path| (version_in(&name(path)), path.clone()));
    found.pop()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_library(path: &Path) -> bool {
    let name = name(path);
    let stem = format!("{}onnxruntime", std::env::consts::DLL_PREFIX);
    name.strip_prefix(&stem).is_some_and(|rest| {
        rest.starts_with(std::env::consts::DLL_SUFFIX)
            || (rest.starts_with('.') && rest.ends_with(std::env::consts::DLL_SUFFIX))
    })
}

/// Numbers of the dotted version in a file name; empty without one.
fn version_in(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn start(library: PathBuf) -> Result<OnnxRuntime, RuntimeError> {
    let builder =
        ort::init_from(&library).map_err(|e| RuntimeError::Load { path: library.clone(), reason: e.to_string() })?;
    let environment = builder
        .with_name("coretuner")
        .with_telemetry(false)
        .build()
        .map_err(|e| RuntimeError::Start { path: library.clone(), reason: e.to_string() })?;
    environment.set_log_level(LogLevel::Warning);
    let version = version_of(ort::info(), &name(&library));
    tracing::debug!(library = %library.display(), version, "loaded ONNX Runtime");
    Ok(OnnxRuntime { environment, library, version })
}

/// Version from the build information (`… git-branch=rel-1.31.1, …`), else from the file name.
fn version_of(build: &str, file: &str) -> String {
    let branch = build.split("git-branch=").nth(1).and_then(|rest| rest.split(',').next()).unwrap_or_default();
    let numbers = [branch, file].map(version_in).into_iter().find(|v| v.len() >= 2).unwrap_or_default();
    if numbers.is_empty() {
        return "of unknown version".to_owned();
    }
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version() {
        let check = |build: &str, file: &str, expected: &str| assert_eq!(version_of(build, file), expected);
        check("ORT Build Info: git-branch=rel-1.31.1, git-commit-id=1", "libonnxruntime.so", "1.31.1");
        check("ORT Build Info: git-branch=HEAD, git-commit-id=1", "libonnxruntime.so.1.26.0", "1.26.0");
        check("", "libonnxruntime.so", "of unknown version");
    }

    #[test]
    fn tells_the_library_from_its_neighbours() {
        let check = |name: &str, expected: bool| assert_eq!(is_library(Path::new(name)), expected, "{name}");
        check("/x/libonnxruntime.so", true);
        check("/x/libonnxruntime.so.1.31.1", true);
        check("/x/libonnxruntime_providers_shared.so", false);
        check("/x/LICENSE", false);
    }

    #[test]
    fn orders_versions_by_number() {
        assert!(version_in("libonnxruntime.so.1.9.0") < version_in("libonnxruntime.so.1.31.1"));
    }

    #[test]
    fn a_missing_file_is_named_with_the_hint() {
        let error = find(Some(Path::new("/nonexistent/libonnxruntime.so"))).expect_err("it does not exist");
        let text = error.to_string();
        assert!(text.contains("/nonexistent/libonnxruntime.so") && text.contains("cargo xtask onnxruntime"), "{text}");
    }

    #[test]
    fn a_file_that_is_no_library_is_refused() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let text = start(path).expect_err("it is no library").to_string();
        assert!(text.contains("Cargo.toml") && text.contains("does not load"), "{text}");
    }
}
