//! Finding the component that a name stands for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Why no component was found.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum PolicyFileError {
    #[error("there is no policy file {}", path.display())]
    #[diagnostic(help(
        "give the path of a component (`NAME.wasm`) or the name of a policy; `coretuner policy list` shows them"
    ))]
    NoFile { path: PathBuf },
    #[error("unknown policy `{name}`; looked for {}; known policies: {}", paths(.tried), names(.known))]
    #[diagnostic(help("{advice}"))]
    Unknown { name: String, tried: Vec<PathBuf>, known: Vec<String>, advice: String },
}

/// Folders that hold components, in the order in which they are asked.
pub(crate) struct PolicyFolders(Vec<PathBuf>);

impl PolicyFolders {
    /// The given folder (flag or environment), then `policies` beside the executable, then `guests` beside its folder.
    pub(crate) fn new(given: Option<&Path>) -> Self {
        let mut folders: Vec<PathBuf> = given.map(Path::to_owned).into_iter().collect();
        let beside = std::env::current_exe().ok().and_then(|exe| exe.parent().map(Path::to_owned));
        if let Some(beside) = beside {
            folders.push(beside.join("policies"));
            folders.extend(beside.parent().map(|above| above.join("guests")));
        }
        Self(folders)
    }

    /// The component for `spec`: a file where it has a path separator or ends in `.wasm`, else a name. A file that
    /// happens to have a policy's name is not meant: in the program's own folder that would be the program.
    pub(crate) fn find(&self, spec: &str) -> Result<PathBuf, PolicyFileError> {
        if is_path(spec) {
            let path = PathBuf::from(spec);
            return if path.is_file() { Ok(path) } else { Err(PolicyFileError::NoFile { path }) };
        }
        let tried: Vec<PathBuf> = self.0.iter().map(|folder| folder.join(format!("{spec}.wasm"))).collect();
        match tried.iter().find(|candidate| candidate.is_file()) {
            Some(found) => Ok(found.clone()),
            None => {
                let (name, known) = (spec.to_owned(), self.list().into_keys().collect());
                Err(PolicyFileError::Unknown { advice: advice(spec), name, tried, known })
            }
        }
    }

    /// Every component found, by name; the first folder wins.
    pub(crate) fn list(&self) -> BTreeMap<String, PathBuf> {
        let mut found = BTreeMap::new();
        for folder in &self.0 {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            for path in entries.flatten().map(|entry| entry.path()) {
                let is_component = path.extension().is_some_and(|end| end == "wasm") && path.is_file();
                if let (true, Some(name)) = (is_component, path.file_stem()) {
                    found.entry(name.to_string_lossy().into_owned()).or_insert(path);
                }
            }
        }
        found
    }

    /// The folders, for messages.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.0
    }
}

fn is_path(spec: &str) -> bool {
    spec.contains(std::path::is_separator) || spec.ends_with(".wasm")
}

fn advice(name: &str) -> String {
    let build = "build the policies with `cargo xtask guests`, or name their folder with --policy-dir or \
                 CORETUNER_POLICY_DIR";
    if Path::new(name).is_file() {
        format!("there is a file of that name here; if you mean it, write `./{name}`. Otherwise {build}")
    } else {
        build.to_owned()
    }
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_then_names_and_lists_what_it_tried() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("las.wasm");
        std::fs::write(&file, b"").unwrap();
        let folders = PolicyFolders(vec![folder.path().join("missing"), folder.path().to_owned()]);
        assert_eq!(folders.find("las").unwrap(), file);
        assert_eq!(folders.find(file.to_str().unwrap()).unwrap(), file);
        let message = folders.find("lass").unwrap_err().to_string();
        assert!(message.contains("missing/lass.wasm") && message.ends_with("known policies: las"), "{message}");
        assert!(matches!(folders.find("./las.wasm"), Err(PolicyFileError::NoFile { .. })));
        assert_eq!(folders.list().into_keys().collect::<Vec<_>>(), ["las"]);
    }
}
