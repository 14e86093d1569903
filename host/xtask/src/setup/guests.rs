//! Guests: crates built for wasm32-unknown-unknown and encoded as components in `target/guests/<name>.wasm`.

use crate::error::Error;
use crate::step::{Done, Steps};
use crate::{cargo, files, process};
use std::path::{Path, PathBuf};

use super::wasm_toolchain::{self, TARGET, Toolchain};

/// Prefix of a policy's crate name; the component's name is what follows.
const POLICY_PREFIX: &str = "coretuner-policy-";

/// One guest crate.
struct Guest {
    package: String,
    /// Name of the component.
    name: String,
    manifest: PathBuf,
}

/// Builds the named guests, or all when `names` is empty.
pub(crate) fn build(steps: &mut Steps, names: &[String]) -> Result<(), Error> {
    let guests = select(discover()?, names)?;
    if guests.is_empty() {
        eprintln!("no guest crates yet: looked in policies/ and tests/fixtures/bad/");
        return Ok(());
    }
    let toolchain = wasm_toolchain::prepare(steps)?;
    let title = format!("build {} guests for {TARGET} with {}", guests.len(), toolchain.title());
    steps.run(&title, || {
        let print = fingerprint(&toolchain)?;
        if guests.iter().all(|guest| is_fresh(guest, &print)) {
            return Ok(Done::Skipped(format!("{} is up to date", folder().display())));
        }
        compile(&guests, &toolchain)?;
        for guest in &guests {
            encode(guest)?;
            files::write(&stamp(guest), print.as_bytes())?;
        }
        Ok(Done::Worked)
    })
}

/// Where the components are.
pub(crate) fn folder() -> PathBuf {
    files::target().join("guests")
}

/// Workspaces that hold guests: all policies, and the misbehaving guests of the tests.
fn workspaces() -> Result<Vec<PathBuf>, Error> {
    let bad = files::root().join("tests/fixtures/bad");
    let together = [files::root().join("policies/Cargo.toml"), bad.join("Cargo.toml")];
    let mut manifests: Vec<PathBuf> = together.into_iter().filter(|path| path.is_file()).collect();
    if bad.is_dir() && !bad.join("Cargo.toml").is_file() {
        let fail = |source| Error::File { what: "list", path: bad.clone(), source };
        for entry in std::fs::read_dir(&bad).map_err(fail)? {
            let manifest = entry.map_err(fail)?.path().join("Cargo.toml");
            manifests.extend(manifest.is_file().then_some(manifest));
        }
    }
    manifests.sort();
    Ok(manifests)
}

fn discover() -> Result<Vec<Guest>, Error> {
    let mut guests = Vec::new();
    for manifest in workspaces()? {
        for package in cargo::cdylibs(&manifest)? {
            let name = package.strip_prefix(POLICY_PREFIX).unwrap_or(&package).to_owned();
            guests.push(Guest { package, name, manifest: manifest.clone() });
        }
    }
    Ok(guests)
}

fn select(guests: Vec<Guest>, names: &[String]) -> Result<Vec<Guest>, Error> {
    let known = |name: &String| guests.iter().any(|guest| guest.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
        return Err(Error::Step {
            what: format!("no guest is named {unknown:?}"),
            tried: vec!["the crates of policies/ and tests/fixtures/bad/".to_owned()],
            advice: format!("name one of: {}", all.join(", ")),
        });
    }
    Ok(guests.into_iter().filter(|guest| names.is_empty() || names.contains(&guest.name)).collect())
}

/// All that the components depend on.
fn fingerprint(toolchain: &Toolchain) -> Result<String, Error> {
    let inputs = ["policies", "examples", "tests/fixtures/bad", "sdk", "wit", "host/xtask/src/setup/guests.rs"];
    let paths: Vec<PathBuf> = inputs.iter().map(|path| files::root().join(path)).collect();
    files::digest(&paths, &toolchain.identity()?)
}

fn is_fresh(guest: &Guest, print: &str) -> bool {
    component(guest).is_file() && std::fs::read(stamp(guest)).is_ok_and(|old| old == print.as_bytes())
}

fn component(guest: &Guest) -> PathBuf {
    folder().join(format!("{}.wasm", guest.name))
}

fn stamp(guest: &Guest) -> PathBuf {
    build_folder().join("stamps").join(&guest.name)
}

fn build_folder() -> PathBuf {
    files::target().join("guests-build")
}

/// One cargo call per workspace.
fn compile(guests: &[Guest], toolchain: &Toolchain) -> Result<(), Error> {
    let mut rest = guests;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|guest| guest.manifest == first.manifest).count();
        let (group, others) = rest.split_at(same);
        compile_workspace(&first.manifest, group, toolchain)?;
        rest = others;
    }
    Ok(())
}

fn compile_workspace(manifest: &Path, guests: &[Guest], toolchain: &Toolchain) -> Result<(), Error> {
    let mut command = toolchain.cargo();
    command.args(["build", "--release", "--target", TARGET, "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(build_folder()).args(toolchain.build_arguments());
    for guest in guests {
        command.args(["--package", &guest.package]);
    }
    // One profile for every guest, whatever its workspace says. Names stay: a trap's backtrace needs them.
    let profile =
        [("PANIC", "abort"), ("OPT_LEVEL", "3"), ("LTO", "true"), ("CODEGEN_UNITS", "1"), ("STRIP", "debuginfo")];
    command.envs(profile.map(|(key, value)| (format!("CARGO_PROFILE_RELEASE_{key}"), value)));
    command.env("CARGO_ENCODED_RUSTFLAGS", rustflags()).env_remove("RUSTFLAGS");
    process::run(&mut command)
}

/// Folders of this machine stay out of the components, so that the same source gives the same bytes anywhere.
fn rustflags() -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = vec![format!("--remap-path-prefix={}=", files::root().join("").display())];
    flags.extend(home.map(|home| format!("--remap-path-prefix={}=/cargo", home.display())));
    flags.join("\u{1f}")
}

fn encode(guest: &Guest) -> Result<(), Error> {
    let file = format!("{}.wasm", guest.package.replace('-', "_"));
    let path = build_folder().join(TARGET).join("release").join(file);
    let core = files::read(&path)?;
    let bytes = encode_module(&core).map_err(|detail| Error::Component { path, detail })?;
    eprintln!("    {:<28} {:>9} bytes", format!("{}.wasm", guest.name), bytes.len());
    files::write(&component(guest), &bytes)
}

fn encode_module(core: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = wit_component::ComponentEncoder::default();
    encoder.validate(true).module(core).map_err(|error| format!("{error:#}"))?;
    encoder.encode().map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guests() -> Vec<Guest> {
        let guest = |name: &str| Guest { package: name.into(), name: name.into(), manifest: "Cargo.toml".into() };
        vec![guest("fifo"), guest("las")]
    }

    fn check(names: &[&str], expected: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let found = select(guests(), &names).expect("known names");
        let found: Vec<&str> = found.iter().map(|guest| guest.name.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_choose_guests() {
        check(&[], &["fifo", "las"]);
        check(&["las"], &["las"]);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = select(guests(), &["lass".to_owned()]).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("lass") && error.contains("fifo, las"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_module_are_refused() {
        let error = encode_module(b"no module").expect_err("refused");
        assert!(!error.is_empty());
    }

    #[test]
    fn paths_of_this_machine_are_mapped_away() {
        let flags = rustflags();
        assert!(flags.contains(&files::root().display().to_string()) && flags.contains("=/cargo"), "{flags}");
    }
}
