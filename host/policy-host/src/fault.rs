//! From wasmtime's errors to the port's faults.

use coretuner_core::port::{FaultKind, PolicyFault};
use wasmtime::{Trap, WasmBacktrace};

use crate::guest::{Guest, MemoryCap};
use crate::instance::Phase;

/// Text of wasmtime's (private) error for too much data from guest to host; a test with a real guest pins it.
const TOO_MUCH_DATA: &str = "too much data is being copied between the host and the guest";

/// Describes what went wrong in one call.
pub(crate) fn fault(phase: &Phase, guest: &Guest, ticks_missed: u64, error: &wasmtime::Error) -> PolicyFault {
    let kind = classify(phase, error);
    let call = phase.call;
    let message = match kind {
        FaultKind::Deadline => {
            let starved = match ticks_missed {
                0 => String::new(),
                missed => format!(" (the host itself lost {missed} ms meanwhile: the machine may be overloaded)"),
            };
            format!("`{call}` ran past its deadline of {} ms{starved}", phase.deadline_ms)
        }
        FaultKind::Fuel => format!("`{call}` burnt its {} units of fuel", phase.fuel),
        FaultKind::StackOverflow => {
            let limit = guest.engine.limits().wasm_stack_bytes;
            format!("`{call}` overflowed its stack of {limit} bytes")
        }
        FaultKind::AnswerTooLarge => {
            let limit = guest.engine.limits().answer_bytes;
            format!("`{call}` handed more than {limit} bytes to the host at once")
        }
        FaultKind::InvalidAnswer => format!("the answer of `{call}` cannot be decoded: {}", error.root_cause()),
        FaultKind::Memory => format!("`{call}`: {}", error.root_cause()),
        FaultKind::Trap => format!("`{call}` trapped: {}", error.root_cause()),
        FaultKind::Start => format!("no instance: {error:#}"),
    };
    PolicyFault { kind, message, backtrace: backtrace(error), output_tail: guest.log.tail() }
}

fn classify(phase: &Phase, error: &wasmtime::Error) -> FaultKind {
    if error.downcast_ref::<MemoryCap>().is_some() {
        return FaultKind::Memory;
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return match trap {
            Trap::Interrupt => FaultKind::Deadline,
            Trap::OutOfFuel => FaultKind::Fuel,
            Trap::StackOverflow => FaultKind::StackOverflow,
            _ => FaultKind::Trap,
        };
    }
    if error.root_cause().to_string().starts_with(TOO_MUCH_DATA) {
        return FaultKind::AnswerTooLarge;
    }
    if phase.instantiates { FaultKind::Start } else { FaultKind::InvalidAnswer }
}

/// Guest frames, innermost first: function name where the component has names, else its index, and the code offset.
fn backtrace(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    let frame = |frame: &wasmtime::FrameInfo| {
        let name = match frame.func_name() {
            // `{:#}` leaves out the hash of Rust's mangling.
            Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
            None => format!("function {}", frame.func_index()),
        };
        match frame.module_offset() {
            Some(offset) => format!("{name} (+{offset:#x})"),
            None => name,
        }
    };
    backtrace.frames().iter().map(frame).collect()
}

/// A fault that no call raised.
pub(crate) fn start_fault(message: String) -> PolicyFault {
    PolicyFault { kind: FaultKind::Start, message, backtrace: Vec::new(), output_tail: Vec::new() }
}
