//! Paths of what `cargo xtask` builds and fetches. Each panics with the command that makes the missing thing.

use std::path::{Path, PathBuf};

/// The root of the source tree.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The target folder, found from the running test, so that it is right wherever cargo put it.
pub fn target() -> PathBuf {
    let program =
        std::env::current_exe().unwrap_or_else(|error| panic!("the test does not know its own path: {error}"));
    // <target>/<profile>/deps/<test>
    let target = program.ancestors().nth(3);
    target.unwrap_or_else(|| panic!("{} is not in a target folder", program.display())).to_path_buf()
}

/// The `coretuner` program of the same profile as the running test.
pub fn coretuner() -> PathBuf {
    program("coretuner", "cargo build --package coretuner-cli")
}

/// A program of the same profile as the running test; `command` builds it.
pub fn program(name: &str, command: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap_or_else(|error| panic!("the test does not know its own path: {error}"));
    // <target>/<profile>/deps/<test>
    let folder = test.ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default();
    existing(folder.join(name), command)
}

/// The component named so: a policy (`fifo`) or a misbehaving guest of the tests.
pub fn guest(name: &str) -> PathBuf {
    existing(target().join("guests").join(format!("{name}.wasm")), "cargo xtask guests")
}

/// The ONNX Runtime library: `ORT_DYLIB_PATH`, else the fetched one.
pub fn onnxruntime() -> PathBuf {
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH") {
        return existing(PathBuf::from(path), "unset ORT_DYLIB_PATH");
    }
    let folder = target().join("onnxruntime");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let library = entries.filter(|path| path.to_string_lossy().contains("libonnxruntime.so.")).max();
    existing(library.unwrap_or_else(|| folder.join("libonnxruntime.so")), "cargo xtask onnxruntime")
}

/// A file of the repository.
pub fn file(path: &str) -> PathBuf {
    existing(root().join(path), "git status")
}

fn existing(path: PathBuf, command: &str) -> PathBuf {
    assert!(path.exists(), "{} is missing: run `{command}`", path.display());
    path
}
