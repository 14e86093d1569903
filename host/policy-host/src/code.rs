//! Loads compiled code. The only unsafe code of the host.
#![allow(unsafe_code, reason = "the one audited place of the host")]

use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes that [`wasmtime::component::Component::serialize`] made in this crate and that came back unchanged.
///
/// Made only by [`crate::cache`], which keeps entries in a directory that only this user can write and compares the
/// digest stored with each entry; never from files that a user or a registry names.
pub(crate) struct OwnCode<'a>(&'a [u8]);

impl<'a> OwnCode<'a> {
    /// Vouches for `bytes`: they were read from the private cache and their digest agrees with the entry's.
    pub(crate) fn verified(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

/// Maps compiled code into the engine. Code of another wasmtime version or configuration is refused safely.
pub(crate) fn load(engine: &Engine, code: &OwnCode<'_>) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` demands unmodified output of `serialize` or `precompile_component`. `OwnCode` carries exactly
    // that: written by `cache::write` from `serialize`, kept in a directory of mode 0700 owned by this user, and checked
    // against its BLAKE3 digest after reading into memory (no mapping of a file that could change under us). Version and
    // settings are checked by wasmtime itself before anything of it is used.
    unsafe { Component::deserialize(engine, code.0) }
}
