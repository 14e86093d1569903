//! Turns untrusted component bytes into a policy that answers in bounded time and memory, or fails in a typed way.
#![forbid(unsafe_code)]
