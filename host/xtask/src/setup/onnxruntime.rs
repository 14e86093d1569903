//! The ONNX Runtime library, taken from the published Python wheel (MIT licence) into `target/onnxruntime/`.

use super::download;
use crate::error::Error;
use crate::step::{Done, Steps};
use crate::{files, process};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "1.31.1";

/// Names a library to use instead of the fetched one.
pub(crate) const OVERRIDE: &str = "ORT_DYLIB_PATH";

/// One published wheel; the library in it does not depend on Python.
struct Wheel {
    /// Platform part of its name.
    platform: &'static str,
    /// SHA-256 of the whole file.
    sha256: &'static str,
}

const X86_64: Wheel = Wheel {
    platform: "manylinux_2_28_x86_64",
    sha256: "5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f",
};
const AARCH64: Wheel = Wheel {
    platform: "manylinux_2_28_aarch64",
    sha256: "da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3",
};

impl Wheel {
    fn file_name(&self) -> String {
        format!("onnxruntime-{VERSION}-cp311-cp311-{}.whl", self.platform)
    }
}

/// Makes sure of the library and gives its path.
pub(crate) fn fetch(steps: &mut Steps) -> Result<PathBuf, Error> {
    let mut library = folder().join(format!("libonnxruntime.so.{VERSION}"));
    steps.run(&format!("ONNX Runtime {VERSION}"), || {
        if let Some(own) = std::env::var_os(OVERRIDE) {
            library = own_library(PathBuf::from(own))?;
            return Ok(Done::Skipped(format!("{OVERRIDE} names {}", library.display())));
        }
        let wheel = wheel_of(std::env::consts::OS, std::env::consts::ARCH)?;
        if std::fs::read_to_string(stamp()).is_ok_and(|old| old == wheel.sha256) && library.is_file() {
            return Ok(Done::Skipped(format!("{} is there", library.display())));
        }
        unpack(&obtain(wheel)?)?;
        files::write(&stamp(), wheel.sha256.as_bytes())?;
        Ok(Done::Worked)
    })?;
    Ok(library)
}

fn folder() -> PathBuf {
    files::target().join("onnxruntime")
}

fn stamp() -> PathBuf {
    folder().join("wheel.sha256")
}

fn own_library(path: PathBuf) -> Result<PathBuf, Error> {
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::Step {
        what: format!("{OVERRIDE} names {}, which is not a file", path.display()),
        tried: vec!["looked at that path".to_owned()],
        advice: format!("name the full path of libonnxruntime.so, or unset {OVERRIDE}"),
    })
}

fn wheel_of(os: &str, arch: &str) -> Result<&'static Wheel, Error> {
    match (os, arch) {
        ("linux", "x86_64") => Ok(&X86_64),
        ("linux", "aarch64") => Ok(&AARCH64),
        _ => Err(Error::Step {
            what: format!("no ONNX Runtime library is pinned for {os} on {arch}"),
            tried: vec!["linux on x86_64 and aarch64".to_owned()],
            advice: format!("install ONNX Runtime {VERSION} yourself and set {OVERRIDE} to its library"),
        }),
    }
}

/// Downloads the wheel by pip where there is one, else from the index itself; the digest decides in both cases.
fn obtain(wheel: &Wheel) -> Result<PathBuf, Error> {
    let path = folder().join(wheel.file_name());
    let mut tried = Vec::new();
    for route in [by_pip, by_index] {
        match route(wheel).and_then(|()| check_digest(&path, wheel)) {
            Ok(()) => return Ok(path),
            Err(error) => tried.push(error.to_string()),
        }
    }
    Err(Error::Step {
        what: format!("failed to fetch {}", wheel.file_name()),
        tried,
        advice: format!("check the connection to the Python package index, or set {OVERRIDE} to a library of your own"),
    })
}

fn by_pip(wheel: &Wheel) -> Result<(), Error> {
    let routes = [("pip", &[][..]), ("pip3", &[]), ("python3", &["-m", "pip"])];
    let mut failure = None;
    for (program, arguments) in routes {
        let mut command = Command::new(program);
        command.args(arguments).args(["download", "--quiet", "--no-deps", "--only-binary=:all:"]);
        command.args(["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"]);
        command.args(["--platform", wheel.platform, "--dest"]).arg(folder());
        match process::capture(command.arg(format!("onnxruntime=={VERSION}"))) {
            Ok(_) => return Ok(()),
            // Another name of the same program helps only where this one is not there at all.
            Err(error @ Error::Start { .. }) => failure = failure.or(Some(error)),
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(()), Err)
}

fn by_index(wheel: &Wheel) -> Result<(), Error> {
    let url = download::file_url("onnxruntime", &wheel.file_name())?;
    download::to_file(&url, &folder().join(wheel.file_name()))
}

fn check_digest(path: &Path, wheel: &Wheel) -> Result<(), Error> {
    let found = files::sha256(path)?;
    if found == wheel.sha256 {
        return Ok(());
    }
    Err(Error::Output {
        command: format!("sha256 {}", path.display()),
        detail: format!("it is {found}, the pinned one is {}", wheel.sha256),
    })
}

/// Takes the library and its licence texts out of the wheel, then removes the wheel.
fn unpack(wheel: &Path) -> Result<(), Error> {
    let fail = |source| Error::File { what: "unpack", path: wheel.to_path_buf(), source };
    let mut archive = zip::ZipArchive::new(File::open(wheel).map_err(fail)?).map_err(|error| fail(error.into()))?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| fail(error.into()))?;
        if let Some(name) = wanted(entry.name()) {
            let mut file = File::create(folder().join(name)).map_err(fail)?;
            io::copy(&mut entry, &mut file).map_err(fail)?;
        }
    }
    std::fs::remove_file(wheel).map_err(fail)
}

/// The file name under which an entry of the wheel is kept.
fn wanted(entry: &str) -> Option<String> {
    let name = entry.rsplit('/').next()?;
    let library = entry.starts_with("onnxruntime/capi/libonnxruntime");
    let text = ["onnxruntime/LICENSE", "onnxruntime/ThirdPartyNotices.txt"].contains(&entry);
    (library || text).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: &str, expected: Option<&str>) {
        assert_eq!(wanted(entry).as_deref(), expected, "{entry}");
    }

    #[test]
    fn takes_library_and_licences_only() {
        check("onnxruntime/capi/libonnxruntime.so.1.31.1", Some("libonnxruntime.so.1.31.1"));
        check("onnxruntime/LICENSE", Some("LICENSE"));
        check("onnxruntime/ThirdPartyNotices.txt", Some("ThirdPartyNotices.txt"));
        check("onnxruntime/capi/onnxruntime_pybind11_state.so", None);
        check("onnxruntime/tools/LICENSE", None);
    }

    #[test]
    fn unknown_machines_are_told_what_to_do() {
        let error = wheel_of("plan9", "mips").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("plan9 on mips") && error.contains(OVERRIDE), "{error}");
    }

    #[test]
    fn a_library_of_ones_own_must_be_there() {
        let error = own_library("/nowhere/libonnxruntime.so".into()).expect_err("refused").to_string();
        assert!(error.contains("/nowhere/libonnxruntime.so") && error.contains("what you can do"), "{error}");
    }

    #[test]
    fn a_wheel_that_differs_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wheel");
        std::fs::write(&path, b"not the wheel").expect("written");
        let error = check_digest(&path, &X86_64).expect_err("refused").to_string();
        assert!(error.contains("the pinned one is"), "{error}");
    }
}
