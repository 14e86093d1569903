//! Making a component of a policy.

/// Exports a policy from its crate as a component. Natively it expands to nothing, so that the same crate links into
/// native programs and tests.
///
/// The crate needs `crate-type = ["cdylib", "rlib"]`.
#[macro_export]
macro_rules! export {
    ($policy:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            use $crate::wasm::bindings::exports::coretuner::policy::policy as wire;

            struct Component;

            std::thread_local! {
                static INSTANCE: std::cell::RefCell<$crate::Instance<$policy>> = std::cell::RefCell::default();
            }

            impl wire::Guest for Component {
                fn describe() -> wire::Description {
                    $crate::wasm::install_panic_hook();
                    $crate::wasm::describe::<$policy>(env!("CARGO_PKG_VERSION"))
                }

                fn configure(json: String) -> Result<(), String> {
                    $crate::wasm::install_panic_hook();
                    INSTANCE.with_borrow_mut(|instance| instance.configure(&json))
                }

                fn decide(delta: $crate::contract::cluster::Delta) -> $crate::contract::plan::Plan {
                    INSTANCE.with_borrow_mut(|instance| $crate::wasm::decide(instance, &delta))
                }

                fn save_state() -> Result<Option<wire::State>, String> {
                    INSTANCE.with_borrow(|instance| $crate::wasm::save_state(instance))
                }

                fn restore_state(state: wire::State) -> Result<(), String> {
                    INSTANCE.with_borrow_mut(|instance| $crate::wasm::restore_state(instance, state))
                }
            }

    $crate::wasm::bindings::export_component!(Component with_types_in $crate::wasm::bindings);
        };
    };
}
