//! Set-up steps that other commands share; each is skipped when already done.

mod download;
pub(crate) mod guests;
pub(crate) mod onnxruntime;
pub(crate) mod toolchain;
mod wasm_toolchain;
