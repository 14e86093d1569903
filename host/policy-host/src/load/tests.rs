use super::*;
use crate::engine::Mode;
use crate::grants::Capability;
use crate::limits::Limits;

const POLICY: &str = "coretuner:policy/policy@0.1.0";

fn engine() -> PolicyEngine {
    PolicyEngine::new(Mode::Metered, Limits { component_bytes: 4096, ..Limits::default() }).unwrap()
}

/// A component that exports `interface` with these functions, all of type `func()`, and imports what `imports` says.
fn text(imports: &str, interface: &str, functions: &[&str]) -> String {
    let exports: String = functions.iter().map(|name| format!(r#"(export "{name}" (func $f))"#)).collect();
    format!(
        r#"(component
            {imports}
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i "f")))
            (instance $x {exports})
            (export "{interface}" (instance $x))
        )"#
    )
}

fn load(text: &str, grants: &Grants) -> LoadError {
    let bytes = wat::parse_str(text).unwrap();
    let loaded = LoadedPolicy::from_bytes(&engine(), "mine", &bytes, grants, &CodeCache::disabled());
    loaded.map(|loaded| loaded.identity().clone()).unwrap_err()
}

#[test]
fn each_step_refuses_in_a_sentence_of_its_own() {
    let check = |text: String, expected: &[&str]| {
        let message = load(&text, &Grants::all()).to_string();
        for part in expected {
            assert!(message.contains(part), "{message}\nlacks {part}");
        }
        assert!(message.starts_with("policy `mine` ") || message.starts_with("`mine` is "), "{message}");
    };
    check("(module)".into(), &["not a policy component", "core WebAssembly module"]);
    check("(component)".into(), &["no policy", "its exports: none"]);
    check(text("", "my:own/thing", &["f"]), &["no policy", "its exports: my:own/thing"]);
    check(
        text("", "coretuner:policy/policy@0.2.0", &FUNCTIONS),
        &["policy `mine` is built for contract 0.2.0; this host runs 0.1"],
    );
    check(
        text(r#"(import "coretuner:policy/log@1.0.0" (instance))"#, "my:own/thing", &["f"]),
        &["built for contract 1.0.0"],
    );
    check(text("", POLICY, &FUNCTIONS[..2]), &["lacks the function `decide`"]);
    check(
        text(r#"(import "wasi:filesystem/preopens@0.2.0" (instance (export "f" (func))))"#, POLICY, &FUNCTIONS),
        &["imports `wasi:filesystem/preopens@0.2.0`", "not part of the contract"],
    );
    check(
        text(r#"(import "coretuner:policy/later@0.1.0" (instance (export "f" (func))))"#, POLICY, &FUNCTIONS),
        &["imports `coretuner:policy/later@0.1.0`", "not part of the contract"],
    );
    check(text("", POLICY, &FUNCTIONS), &["does not have the types of contract 0.1.0", "describe"]);
    check(
        text(r#"(import "coretuner:policy/log@0.1.0" (instance (export "shout" (func))))"#, POLICY, &FUNCTIONS),
        &["does not have the types of contract 0.1.0", "shout"],
    );
    // A patch of the contract that is newer than the host's is no reason to refuse.
    check(text("", "coretuner:policy/policy@0.1.9", &FUNCTIONS), &["does not have the types of contract 0.1.9"]);
}

#[test]
fn a_capability_that_is_not_granted_is_refused_by_name() {
    let imports = r#"(import "coretuner:policy/kv@0.1.0" (instance (export "f" (func))))"#;
    let component = text(imports, POLICY, &FUNCTIONS);
    let granted = Grants::from_iter([Capability::Log, Capability::Predict]);
    let message = load(&component, &granted).to_string();
    assert_eq!(
        message,
        "policy `mine` imports `coretuner:policy/kv@0.1.0`, which is not granted; grant it or build the policy without it"
    );
}

#[test]
fn files_are_read_within_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, content: &[u8], expected: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let loaded = LoadedPolicy::from_file(&engine(), &path, &Grants::all(), &CodeCache::disabled());
        let message = loaded.map(|loaded| loaded.identity().clone()).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    check("large.wasm", &[0; 4097], "policy `large` is larger than 4096 bytes");
    check("text.wat", b"(component)", "`text` is not a policy component: it is WebAssembly text");
    check("empty.wasm", b"", "it is empty");
    let component = wat::parse_str(text("", POLICY, &FUNCTIONS)).unwrap();
    check("cut.wasm", &component[..component.len() - 9], "damaged or truncated");
    let absent = folder.path().join("absent.wasm");
    let loaded = LoadedPolicy::from_file(&engine(), &absent, &Grants::all(), &CodeCache::disabled());
    assert!(matches!(loaded.map(|_| ()), Err(LoadError::Read { path, .. }) if path == absent));
}

#[test]
fn descriptions_are_checked() {
    let check = |name: &str, schema: &str, expected: Result<(), &str>| {
        let description = Description {
            name: name.into(),
            version: String::new(),
            summary: String::new(),
            configuration_schema: schema.into(),
            reasons: Vec::new(),
            state_version: 0,
        };
        match (check_description(&description), expected) {
            (Ok(()), Ok(())) => {}
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (got, expected) => panic!("{name} {schema}: {got:?}, expected {expected:?}"),
        }
    };
    check("synergy-tune", "{}", Ok(()));
    check("", "{}", Err("its name \"\""));
    check("Fifo", "{}", Err("a-z"));
    check("a\nb", "{}", Err("\"a\\nb\""));
    check(&"x".repeat(65), "{}", Err("1 to 64"));
    check("fifo", "{", Err("not JSON"));
}

#[test]
fn damaged_components_are_refused_without_a_panic() {
    let component = wat::parse_str(text("", POLICY, &FUNCTIONS)).unwrap();
    let (engine, grants, cache) = (engine(), Grants::all(), CodeCache::disabled());
    // Whole, it is refused for its types; nothing that damage makes of it may be taken either.
    let refused = |bytes: &[u8]| LoadedPolicy::from_bytes(&engine, "mine", bytes, &grants, &cache).is_err();
    for at in 0..component.len() {
        assert!(refused(&component[..at]), "cut at {at}");
        for bit in 0..8 {
            let mut damaged = component.clone();
            damaged[at] ^= 1 << bit;
            assert!(refused(&damaged), "byte {at}, bit {bit}");
        }
    }
}
