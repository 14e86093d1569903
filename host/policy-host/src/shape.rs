//! What a component imports and exports, read off its bytes before anything is compiled or linked.

use std::fmt;

use wasmparser::component_types::ComponentEntityType;
use wasmparser::types::{Types, TypesRef};
use wasmparser::{ComponentExternalKind, Parser, Payload, Validator};

use crate::grants::Capability;

/// Package of the contract.
pub(crate) const PACKAGE: &str = "coretuner:policy";
/// Interface that a policy exports.
pub(crate) const EXPORT: &str = "policy";
/// Its functions.
pub(crate) const FUNCTIONS: [&str; 5] = ["describe", "configure", "decide", "save-state", "restore-state"];
/// Interfaces of the contract that hold types only.
const TYPE_INTERFACES: [&str; 2] = ["cluster", "plan"];

/// Version of the contract: `MAJOR.MINOR.PATCH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(into = "String")]
pub struct ContractVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl ContractVersion {
    /// Versions that this host runs: every patch of these (major, minor) pairs.
    pub const SUPPORTED: &'static [(u32, u32)] = &[(0, 1)];

    /// Whether this host runs policies built for this version.
    pub fn is_supported(self) -> bool {
        Self::SUPPORTED.contains(&(self.major, self.minor))
    }

    /// `0.1`, or `0.1 and 0.2`.
    pub fn supported_text() -> String {
        let list: Vec<_> = Self::SUPPORTED.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
        list.join(" and ")
    }

    fn parse(text: &str) -> Option<Self> {
        let release = text.split(['-', '+']).next()?;
        let mut parts = release.split('.').map(str::parse);
        let (major, minor, patch) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
        parts.next().is_none().then_some(Self { major, minor, patch })
    }
}

impl fmt::Display for ContractVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl From<ContractVersion> for String {
    fn from(version: ContractVersion) -> Self {
        version.to_string()
    }
}

/// What an import asks of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImportKind {
    /// A capability of the contract.
    Capability(Capability),
    /// Only types: nothing to grant.
    Types,
    /// Something that the contract does not have.
    Foreign,
}

/// One import.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Import {
    /// As written in the component, for example `coretuner:policy/log@0.1.0`.
    pub name: String,
    pub kind: ImportKind,
}

/// Names at a component's edge.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ComponentShape {
    pub imports: Vec<Import>,
    /// Every export, also those that the host ignores.
    pub exports: Vec<String>,
    /// Version of the contract that it was built for; `None` when it does not speak of the contract at all.
    pub contract: Option<ContractVersion>,
    /// Functions of the policy interface that it exports; empty without the interface.
    pub functions: Vec<String>,
}

/// Bytes that are no component.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("it is empty")]
    Empty,
    #[error(
        "it is a core WebAssembly module, not a component; wrap it (`cargo xtask guests` or `wasm-tools component new`)"
    )]
    CoreModule,
    #[error("it is WebAssembly text; this host takes binary components (`wasm-tools parse` turns text into binary)")]
    Text,
    #[error("it is not WebAssembly: it begins with {0}")]
    Garbage(String),
    #[error("it is damaged or truncated at byte {offset} of {size}: {message}")]
    Invalid { offset: usize, size: usize, message: String },
}

impl ComponentShape {
    /// Validates `bytes` and reads what they import and export.
    pub fn read(bytes: &[u8]) -> Result<Self, ShapeError> {
        check_kind(bytes)?;
        let invalid = |error: wasmparser::BinaryReaderError| ShapeError::Invalid {
            offset: error.offset(),
            size: bytes.len(),
            message: error.message().to_owned(),
        };
        let types = Validator::new().validate_all(bytes).map_err(invalid)?;
        let (imports, exports) = names(bytes).map_err(invalid)?;
        let imports: Vec<Import> = imports.into_iter().map(|name| import(&types, name)).collect();
        let contract = contract_version(&exports, &imports);
        let functions = exports.iter().find(|name| interface_of(name) == Some(EXPORT));
        let functions = functions.map_or_else(Vec::new, |name| instance_functions(&types, name));
        Ok(Self { imports, exports, contract, functions })
    }

    /// Name of the exported policy interface, with its version.
    pub(crate) fn policy_export(&self) -> Option<&str> {
        self.exports.iter().map(String::as_str).find(|name| interface_of(name) == Some(EXPORT))
    }

    /// Whether a capability is imported.
    pub(crate) fn imports(&self, capability: Capability) -> bool {
        self.imports.iter().any(|import| import.kind == ImportKind::Capability(capability))
    }
}

fn check_kind(bytes: &[u8]) -> Result<(), ShapeError> {
    if bytes.is_empty() {
        return Err(ShapeError::Empty);
    }
    if Parser::is_component(bytes) {
        return Ok(());
    }
    if Parser::is_core_wasm(bytes) {
        return Err(ShapeError::CoreModule);
    }
    if bytes.trim_ascii_start().starts_with(b"(") {
        return Err(ShapeError::Text);
    }
    let head: String =
        bytes.iter().take(8).flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
    Err(ShapeError::Garbage(format!("`{head}`")))
}

/// Names of the imports and exports of the outermost component.
fn names(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), wasmparser::BinaryReaderError> {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0_u32);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section {
                    imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    let export = export?;
                    if export.kind != ComponentExternalKind::Type {
                        exports.push(export.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

fn import(types: &Types, name: String) -> Import {
    let kind = match (interface_of(&name), types_only(types.as_ref(), &name)) {
        (Some(interface), _) if TYPE_INTERFACES.contains(&interface) => ImportKind::Types,
        (Some(interface), _) => interface.parse().map_or(ImportKind::Foreign, ImportKind::Capability),
        (None, true) => ImportKind::Types,
        (None, false) => ImportKind::Foreign,
    };
    Import { name, kind }
}

/// Whether an imported instance holds types only.
fn types_only(types: TypesRef<'_>, name: &str) -> bool {
    let Some(item) = types.component_item_for_import(name) else { return false };
    match item.ty {
        ComponentEntityType::Type { .. } => true,
        ComponentEntityType::Instance(id) => {
            types[id].exports.values().all(|item| matches!(item.ty, ComponentEntityType::Type { .. }))
        }
        _ => false,
    }
}

fn instance_functions(types: &Types, name: &str) -> Vec<String> {
    let types = types.as_ref();
    match types.component_item_for_export(name).map(|item| item.ty) {
        Some(ComponentEntityType::Instance(id)) => {
            let functions =
                types[id].exports.iter().filter(|(_, item)| matches!(item.ty, ComponentEntityType::Func(_)));
            functions.map(|(name, _)| name.clone()).collect()
        }
        _ => Vec::new(),
    }
}

/// `log` of `coretuner:policy/log@0.1.0`; `None` outside the contract's package.
fn interface_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(PACKAGE)?.strip_prefix('/')?;
    Some(rest.split('@').next().unwrap_or(rest))
}

/// The version in the exported policy interface's name, else in the first import of the contract.
fn contract_version(exports: &[String], imports: &[Import]) -> Option<ContractVersion> {
    let exports = exports.iter().filter(|name| interface_of(name) == Some(EXPORT));
    let imports = imports.iter().map(|import| &import.name).filter(|name| interface_of(name).is_some());
    exports.chain(imports).find_map(|name| ContractVersion::parse(name.split_once('@')?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_judged() {
        let check = |text: &str, expected: Option<(u32, u32, u32)>, supported: bool| {
            let version = ContractVersion::parse(text);
            assert_eq!(version.map(|v| (v.major, v.minor, v.patch)), expected, "{text}");
            assert_eq!(version.is_some_and(ContractVersion::is_supported), supported, "{text}");
        };
        check("0.1.0", Some((0, 1, 0)), true);
        check("0.1.7", Some((0, 1, 7)), true);
        check("0.1.0-draft", Some((0, 1, 0)), true);
        check("0.2.0", Some((0, 2, 0)), false);
        check("1.1.0", Some((1, 1, 0)), false);
        check("0.1", None, false);
        check("0.1.0.0", None, false);
        check("x", None, false);
    }

    #[test]
    fn what_is_no_component_is_named() {
        let check = |bytes: &[u8], expected: &str| {
            let error = ComponentShape::read(bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(b"", "empty");
        check(b"\0asm\x01\0\0\0", "core WebAssembly module");
        check(b"\n (component)", "WebAssembly text");
        check(b"\x7fELF\x02\x01\x01\0", r"begins with `\x7fELF");
        check(b"\0asm\x0d\0\x01\0\x07\x10", "damaged or truncated");
    }

    #[test]
    fn imports_are_told_apart() {
        let bytes = wat::parse_str(
            r#"(component
                (import "coretuner:policy/log@0.1.0" (instance (export "write" (func))))
                (import "coretuner:policy/cluster@0.1.0" (instance))
                (import "coretuner:policy/later@0.1.0" (instance (export "f" (func))))
                (import "other:place/types" (instance (type $t (enum "a")) (export "t" (type (eq $t)))))
                (import "wasi:filesystem/preopens@0.2.0" (instance (export "f" (func))))
                (component (import "inner" (func)))
            )"#,
        )
        .unwrap();
        let shape = ComponentShape::read(&bytes).unwrap();
        let kinds: Vec<_> = shape.imports.iter().map(|import| import.kind).collect();
        let log = ImportKind::Capability(Capability::Log);
        assert_eq!(kinds, [log, ImportKind::Types, ImportKind::Foreign, ImportKind::Types, ImportKind::Foreign]);
        assert_eq!(shape.contract, Some(ContractVersion { major: 0, minor: 1, patch: 0 }));
        assert!(shape.functions.is_empty() && shape.policy_export().is_none());
    }
}
