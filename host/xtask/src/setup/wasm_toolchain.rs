//! A Rust toolchain that builds for wasm32-unknown-unknown: the active one, or the distribution's.

use crate::error::Error;
use crate::step::{Done, Steps};
use crate::{cargo, process};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The guests' target.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Set to `active` or `distribution` to allow only that route.
const CHOICE: &str = "CORETUNER_GUEST_TOOLCHAIN";

/// Debian's compiler, cargo and the standard library's source, all of the same version.
const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];
const DISTRIBUTION_RUSTC: &str = "/usr/bin/rustc";
const DISTRIBUTION_CARGO: &str = "/usr/bin/cargo";
const DISTRIBUTION_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/Cargo.lock";

/// How guests are compiled.
pub(crate) enum Toolchain {
    /// The toolchain that runs xtask has the target.
    Active,
    /// The distribution's compiler, which builds the standard library from source and needs a linker named.
    Distribution { linker: PathBuf },
}

impl Toolchain {
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Active => "the active toolchain",
            Self::Distribution { .. } => "the distribution's toolchain",
        }
    }

    /// The compiler's version in full.
    pub(crate) fn identity(&self) -> Result<String, Error> {
        match self {
            Self::Active => process::capture(rustc().arg("-vV")),
            Self::Distribution { .. } => process::capture(Command::new(DISTRIBUTION_RUSTC).arg("-vV")),
        }
    }

    pub(crate) fn cargo(&self) -> Command {
        match self {
            Self::Active => cargo::cargo(),
            Self::Distribution { linker } => {
                let mut command = Command::new(DISTRIBUTION_CARGO);
                // `-Z build-std` is not stable; the distribution's compiler allows it on request.
                command.env("RUSTC", DISTRIBUTION_RUSTC).env("RUSTC_BOOTSTRAP", "1");
                command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                command
            }
        }
    }

    pub(crate) fn build_arguments(&self) -> &'static [&'static str] {
        match self {
            Self::Active => &[],
            Self::Distribution { .. } => &["-Z", "build-std=std,panic_abort"],
        }
    }
}

/// Finds or installs a toolchain for guests.
pub(crate) fn prepare(steps: &mut Steps) -> Result<Toolchain, Error> {
    let choice = std::env::var(CHOICE).ok();
    let mut tried = Vec::new();
    if choice.as_deref() != Some("distribution") && active(steps, &mut tried)? {
        return Ok(Toolchain::Active);
    }
    if choice.as_deref() != Some("active") && distribution(steps, &mut tried)? {
        match linker(&mut tried) {
            Some(linker) => return Ok(Toolchain::Distribution { linker }),
            None => tried.push(format!("looked for a linker for {TARGET}")),
        }
    }
    let advice = format!(
        "run `rustup target add {TARGET}`, or as root `apt-get install {} lld`, then run this again",
        PACKAGES.join(" ")
    );
    Err(Error::Step { what: format!("no Rust toolchain here builds for {TARGET}"), tried, advice })
}

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Whether the active toolchain has the target's standard library.
fn has_target() -> bool {
    let folder = process::capture(rustc().args(["--print", "target-libdir", "--target", TARGET])).unwrap_or_default();
    let entries = std::fs::read_dir(folder.trim()).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
}

/// The first route: the toolchain has the target, or rustup adds it.
fn active(steps: &mut Steps, tried: &mut Vec<String>) -> Result<bool, Error> {
    let mut found = false;
    steps.run(&format!("standard library for {TARGET}"), || {
        found = has_target();
        if found {
            return Ok(Done::Skipped("the active toolchain has it".to_owned()));
        }
        let mut command = Command::new("rustup");
        match process::capture(command.args(["target", "add", TARGET])) {
            Ok(_) => found = has_target(),
            Err(error) => tried.push(error.to_string()),
        }
        if found { Ok(Done::Worked) } else { Ok(Done::Skipped("rustup cannot add it here".to_owned())) }
    })?;
    Ok(found)
}

/// The second route: the distribution's compiler with the standard library's source.
fn distribution(steps: &mut Steps, tried: &mut Vec<String>) -> Result<bool, Error> {
    steps.run(&format!("distribution packages {}", PACKAGES.join(" ")), || {
        if has_distribution() {
            return Ok(Done::Skipped("installed".to_owned()));
        }
        if install(&PACKAGES, tried) {
            Ok(Done::Worked)
        } else {
            Ok(Done::Skipped("cannot be installed here".to_owned()))
        }
    })?;
    Ok(has_distribution())
}

fn has_distribution() -> bool {
    [DISTRIBUTION_RUSTC, DISTRIBUTION_CARGO, DISTRIBUTION_SOURCE].iter().all(|path| Path::new(path).is_file())
}

/// Installs packages by apt, as root or through a sudo that asks nothing. Failures are noted, not fatal.
fn install(packages: &[&str], tried: &mut Vec<String>) -> bool {
    for arguments in [&["update"][..], &["install", "-y", "--no-install-recommends"][..]] {
        let names = if arguments.len() > 1 { packages } else { &[] };
        let mut command = privileged("apt-get");
        command.args(arguments).args(names).env("DEBIAN_FRONTEND", "noninteractive");
        if let Err(error) = process::capture(&mut command) {
            tried.push(error.to_string());
            return false;
        }
    }
    true
}

fn privileged(program: &str) -> Command {
    let root = process::capture(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if root {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", program]);
    command
}

/// rustup's own linker, or LLVM's from the distribution, which is installed when there is none.
fn linker(tried: &mut Vec<String>) -> Option<PathBuf> {
    find_linker().or_else(|| if install(&["lld"], tried) { find_linker() } else { None })
}

fn find_linker() -> Option<PathBuf> {
    let sysroot = process::capture(rustc().args(["--print", "sysroot"])).ok()?;
    let host = std::env::consts::ARCH;
    let rustup = PathBuf::from(sysroot.trim()).join(format!("lib/rustlib/{host}-unknown-linux-gnu/bin/rust-lld"));
    let mut candidates = vec![rustup, PathBuf::from("/usr/bin/wasm-ld")];
    candidates.extend((14..=30).rev().map(|version| PathBuf::from(format!("/usr/bin/wasm-ld-{version}"))));
    candidates.into_iter().find(|path| path.is_file())
}
