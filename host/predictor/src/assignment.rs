//! Which execution provider runs each node of a session. `ort` has no safe call for it, so this module calls the C API.
#![allow(unsafe_code, reason = "asking ONNX Runtime which provider runs has no safe wrapper")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::ptr;

use ort::AsPointer;
use ort::session::Session;
use ort::sys::{OrtEpAssignedNode, OrtEpAssignedSubgraph};

/// The session option that makes a session remember its assignment.
pub(crate) const RECORD_KEY: &str = "session.record_ep_graph_assignment_info";

/// Nodes by provider name. `session` must have been built with [`RECORD_KEY`] = `1`.
pub(crate) fn nodes_by_provider(session: &Session) -> ort::Result<BTreeMap<String, usize>> {
    let api = ort::api();
    let mut subgraphs: *const *const OrtEpAssignedSubgraph = ptr::null();
    let mut count = 0;
    // SAFETY: the session lives through the call; the out-pointers are valid. The array that comes back is owned by the
    // session, which outlives this function.
    unsafe {
        let status = (api.Session_GetEpGraphAssignmentInfo)(session.ptr(), &mut subgraphs, &mut count);
        ort::Error::result_from_status(status)?;
    }
    // SAFETY: on success the array holds `count` pointers, or is null with a count of 0.
    let subgraphs = unsafe { slice_of(subgraphs, count) };
    let mut nodes = BTreeMap::new();
    for &subgraph in subgraphs {
        let (name, size) = describe(subgraph)?;
        *nodes.entry(name).or_default() += size;
    }
    Ok(nodes)
}

/// Provider and number of nodes of one subgraph.
fn describe(subgraph: *const OrtEpAssignedSubgraph) -> ort::Result<(String, usize)> {
    let api = ort::api();
    let mut name: *const c_char = ptr::null();
    let mut nodes: *const *const OrtEpAssignedNode = ptr::null();
    let mut count = 0;
    // SAFETY: `subgraph` comes from the session's own array; the out-pointers are valid; a name that comes back is a
    // NUL-terminated string owned by the session and is copied at once.
    unsafe {
        ort::Error::result_from_status((api.EpAssignedSubgraph_GetEpName)(subgraph, &mut name))?;
        ort::Error::result_from_status((api.EpAssignedSubgraph_GetNodes)(subgraph, &mut nodes, &mut count))?;
        let name = if name.is_null() { String::new() } else { CStr::from_ptr(name).to_string_lossy().into_owned() };
        Ok((name, count))
    }
}

/// # Safety
/// `data` points to `len` initialised values that outlive `'a`, unless it is null.
unsafe fn slice_of<'a, T>(data: *const T, len: usize) -> &'a [T] {
    // SAFETY: by the caller's promise.
    if data.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(data, len) } }
}
