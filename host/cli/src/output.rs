//! Writing results: whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why a result could not be written.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum OutputError {
    #[error("cannot create the output folder {}: {source}", path.display())]
    #[diagnostic(help("give --out a folder that you may create and write"))]
    CreateFolder { path: PathBuf, source: io::Error },
    #[error("cannot write into {}: {source}", path.display())]
    #[diagnostic(help("choose another place; nothing was run and nothing was written"))]
    NotWritable { path: PathBuf, source: io::Error },
    #[error("{} is a folder, not a file", path.display())]
    #[diagnostic(help("give the name of a file to write"))]
    IsFolder { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    #[diagnostic(help("free some space or choose another place; an older file of that name was left as it was"))]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write to standard output: {source}")]
    Stdout { source: io::Error },
}

/// A folder for results, proven writable before the run.
pub(crate) struct OutFolder {
    path: PathBuf,
}

impl OutFolder {
    /// Creates the folder where it is missing and tries to write into it.
    pub(crate) fn prepare(path: &Path) -> Result<Self, OutputError> {
        fs::create_dir_all(path).map_err(|source| OutputError::CreateFolder { path: path.to_owned(), source })?;
        probe(path)?;
        Ok(Self { path: path.to_owned() })
    }

    /// Writes one file of the folder and returns its path.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, OutputError> {
        let path = self.path.join(name);
        write_file(&path, content)?;
        Ok(path)
    }
}

/// Checks before the run that `path` can be written afterwards.
pub(crate) fn check_file(path: &Path) -> Result<(), OutputError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(OutputError::IsFolder { path: path.to_owned() }),
        Ok(found) if !found.is_file() => Ok(()),
        _ => probe(&folder_of(path)),
    }
}

/// Writes a whole file under another name and renames it, so that a reader never sees half of one. Devices and pipes
/// are written straight: renaming over them would replace them.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), OutputError> {
    let failed = |source| OutputError::Write { path: path.to_owned(), source };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(OutputError::IsFolder { path: path.to_owned() }),
        Ok(found) if !found.is_file() => {
            let mut device = File::options().write(true).open(path).map_err(failed)?;
            return device.write_all(content).map_err(failed);
        }
        _ => {}
    }
    let mut file = new_file(&folder_of(path)).map_err(failed)?;
    file.write_all(content).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A hidden folder for files that shall appear whole, beside the place where they will stand.
pub(crate) struct Staging {
    aside: tempfile::TempDir,
    target: PathBuf,
}

impl Staging {
    /// For files in the folder of `path`.
    pub(crate) fn beside(path: &Path) -> Result<Self, OutputError> {
        let target = folder_of(path);
        let failed = |source| OutputError::NotWritable { path: target.clone(), source };
        let aside = tempfile::Builder::new().prefix(".coretuner-").tempdir_in(&target).map_err(failed)?;
        Ok(Self { aside, target })
    }

    /// Where to write.
    pub(crate) fn path(&self) -> &Path {
        self.aside.path()
    }

    /// Moves every file to its place; gives the places, sorted.
    pub(crate) fn publish(self) -> Result<Vec<PathBuf>, OutputError> {
        let failed = |source| OutputError::Write { path: self.target.clone(), source };
        let mut names = Vec::new();
        for entry in fs::read_dir(self.aside.path()).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
        }
        names.sort();
        let mut places = Vec::new();
        for name in names {
            let place = self.target.join(&name);
            let moved = fs::rename(self.aside.path().join(&name), &place);
            moved.map_err(|source| OutputError::Write { path: place.clone(), source })?;
            places.push(place);
        }
        Ok(places)
    }
}

/// Prints to standard output. A reader that went away is no error: `coretuner … | head` ends quietly.
pub(crate) fn print(text: &str) -> Result<(), OutputError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => Err(OutputError::Stdout { source }),
        _ => Ok(()),
    }
}

/// A line about the run for a person, on standard error; failing to say it is no reason to fail.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// What a reader of the results must not miss, on standard error.
pub(crate) fn warn(lines: &[String]) {
    lines.iter().for_each(|line| note(&format!("!! {line}")));
}

/// Warnings and errors of the libraries go to standard error; `RUST_LOG` asks for more.
pub(crate) fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    // Fails only when another subscriber is installed already, which then does the same.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).without_time().try_init();
}

/// A new file in `folder` with the permissions that the user's mask asks for.
pub(crate) fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(".coretuner-").permissions(Permissions::from_mode(0o666)).tempfile_in(folder)
}

fn probe(folder: &Path) -> Result<(), OutputError> {
    new_file(folder).map(drop).map_err(|source| OutputError::NotWritable { path: folder.to_owned(), source })
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_a_file_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_file(&path, b"one").unwrap();
        write_file(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn says_that_a_device_is_full() {
        let error = write_file(Path::new("/dev/full"), &[0; 10]).unwrap_err().to_string();
        assert!(error.contains("cannot write /dev/full: No space left on device"), "{error}");
    }

    #[test]
    fn refuses_folders_and_missing_parents() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(check_file(folder.path()), Err(OutputError::IsFolder { .. })));
        assert!(matches!(check_file(&folder.path().join("no/where.html")), Err(OutputError::NotWritable { .. })));
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(matches!(OutFolder::prepare(&file.join("sub")), Err(OutputError::CreateFolder { .. })));
    }
}
