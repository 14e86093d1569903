//! Bindings generated from the contract. Exports are called through them; imports are linked by hand in `link`, one
//! capability at a time and with access to the store, so the generated host traits stay unused.
#![allow(
    unsafe_code,
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "generated: typed calls rest on type checks that the same generated code makes when it is linked"
)]

wasmtime::component::bindgen!({
    world: "scheduling-policy",
    path: "../../wit/v0_1",
    ownership: Borrowing { duplicate_if_necessary: true },
});
