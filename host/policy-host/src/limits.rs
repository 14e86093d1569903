//! Every limit of the policy host in one table: used by the code, printed by `coretuner limits`.

use serde::{Deserialize, Serialize};

/// Who may change a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOwner {
    /// The operator, in the configuration.
    Operator,
    /// Nobody at run time: part of the contract or of the build.
    Fixed,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    pub name: &'static str,
    /// Value in force.
    pub value: u64,
    pub default: u64,
    pub unit: &'static str,
    pub owner: LimitOwner,
    /// Metric that shows how close one is to it; `-` where the limit has none.
    pub metric: &'static str,
    pub meaning: &'static str,
}

macro_rules! limits {
    ($($name:ident = $default:expr, $unit:literal, $owner:ident, $metric:literal, $meaning:literal;)*) => {
        /// Limits in force for one engine and everything that runs on it.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Limits {
            $(#[doc = concat!($meaning, " (", $unit, ")")] pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            /// The table, in declaration order.
            pub fn table(&self) -> Vec<Limit> {
                vec![$(Limit {
                    name: stringify!($name),
                    value: self.$name,
                    default: $default,
                    unit: $unit,
                    owner: LimitOwner::$owner,
                    metric: $metric,
                    meaning: $meaning,
                },)*]
            }
        }
    };
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

limits! {
    component_bytes = 64 * MIB, "bytes", Operator, "policy_component_bytes", "largest component file";
    start_deadline_ms = 1_000, "ms", Operator, "policy_start_ms", "instantiate and describe, production mode";
    configure_deadline_ms = 2_000, "ms", Operator, "policy_configure_ms", "one configure call, production mode";
    decide_deadline_ms = 1_000, "ms", Operator, "policy_decide_ms", "one decide call without its time in predict, production mode";
    state_deadline_ms = 1_000, "ms", Operator, "policy_state_ms", "save-state or restore-state, production mode";
    start_fuel = 1_000_000_000, "fuel", Operator, "policy_start_fuel", "instantiate and describe, metered mode";
    configure_fuel = 2_000_000_000, "fuel", Operator, "policy_configure_fuel", "one configure call, metered mode";
    decide_fuel = 20_000_000_000, "fuel", Operator, "policy_decide_fuel", "one decide call, metered mode";
    state_fuel = 1_000_000_000, "fuel", Operator, "policy_state_fuel", "save-state or restore-state, metered mode";
    epoch_tick_ms = 1, "ms", Operator, "engine_ticks_missed", "resolution of deadlines";
    memory_bytes = 512 * MIB, "bytes", Operator, "policy_memory_bytes", "linear memory of one instance";
    table_elements = 100_000, "elements", Operator, "-", "function table of one instance";
    wasm_stack_bytes = 512 * KIB, "bytes", Operator, "-", "stack of guest calls";
    answer_bytes = 16 * MIB, "bytes", Operator, "policy_answer_bytes", "data that one call or host call may hand to the host";
    renew_after_calls = 1_000_000, "calls", Operator, "policy_instance_calls", "age at which an instance is renewed with a full image";
    renew_after_growth_bytes = 256 * MIB, "bytes", Operator, "policy_memory_bytes", "growth of memory since the first image at which it is renewed";
    backtrace_frames = 20, "frames", Operator, "-", "guest frames kept of a fault";
    log_bytes_per_cycle = 64 * KIB, "bytes", Operator, "policy_log_dropped", "log text accepted in one cycle";
    log_line_bytes = 4 * KIB, "bytes", Operator, "policy_log_dropped", "longest log message; the rest is cut";
    log_tail_lines = 20, "lines", Operator, "-", "last log lines attached to a fault";
    metric_series = 64, "series", Operator, "policy_metrics_dropped", "different metric names of a policy";
    metric_name_bytes = 64, "bytes", Fixed, "policy_metrics_dropped", "longest metric name";
    kv_keys = 1_024, "keys", Operator, "policy_kv_keys", "keys of a policy name";
    kv_bytes = 4 * MIB, "bytes", Operator, "policy_kv_bytes", "keys and values of a policy name in total";
    kv_value_bytes = 256 * KIB, "bytes", Operator, "policy_kv_bytes", "one value";
    kv_key_bytes = 256, "bytes", Fixed, "-", "one key";
    predict_rows = 8_000_000, "rows", Operator, "policy_predict_rows", "grid points that one query may ask, over all its jobs";
    predict_budget_ms = 2_000, "ms", Operator, "policy_predict_ms", "time in predict in one cycle, production mode";
    predict_memo_points = 4_000_000, "points", Operator, "-", "grid points remembered per instance";
    predict_fuel_per_row = 100, "fuel", Fixed, "policy_decide_fuel", "charge per grid point of a distinct kind, metered mode";
    host_call_fuel = 200, "fuel", Fixed, "policy_decide_fuel", "charge per host call, metered mode; one more per byte handed over";
    state_bytes = 4 * MIB, "bytes", Operator, "policy_state_bytes", "blob of save-state";
    configuration_bytes = MIB, "bytes", Operator, "-", "configuration text";
    pool_instances = 64, "instances", Operator, "engine_instances", "slots of the pooling allocator: live instances on one engine";
    code_cache_bytes = 1024 * MIB, "bytes", Operator, "code_cache_bytes", "compiled code kept on disk; the oldest entries go first";
}

impl Limits {
    /// Bytes as a `usize` for interfaces that want one.
    pub(crate) fn size(value: u64) -> usize {
        usize::try_from(value).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_per_field_and_defaults_in_force() {
        let limits = Limits { decide_fuel: 7, ..Limits::default() };
        let table = limits.table();
        let fields = serde_json::to_value(&limits).unwrap();
        assert_eq!(table.len(), fields.as_object().unwrap().len());
        for row in &table {
            assert_eq!(fields[row.name], row.value, "{}", row.name);
        }
        let row = table.iter().find(|row| row.name == "decide_fuel").unwrap();
        assert_eq!((row.value, row.default), (7, 20_000_000_000));
    }

    #[test]
    fn an_unknown_limit_is_refused() {
        let error = serde_json::from_str::<Limits>(r#"{"decide_fule": 1}"#).unwrap_err();
        assert!(error.to_string().contains("decide_fule"), "{error}");
    }
}
