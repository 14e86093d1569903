//! How much slower other GPU kinds are than the V100 on which the model was trained.

/// Speed relative to a V100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slowness {
    /// log(seconds here / seconds on a V100).
    pub log: f64,
    /// Standard deviation of that guess.
    pub sd: f64,
}

/// Memory bandwidth of a V100, GB/s (SXM2).
const V100_GB_PER_S: f64 = 900.0;
/// Carrying a speed by memory bandwidth is wrong by 38 % on average (`models/evaluate.py`).
const KNOWN_SD: f64 = 0.4;
/// Nothing is known of this kind: between a third and three times a V100.
const UNKNOWN_SD: f64 = 1.1;

/// Memory bandwidth by product, GB/s, from the vendors' data sheets. A name matches the longest entry that it starts with.
const BANDWIDTH: [(&str, f64); 23] = [
    ("a10", 600.0),
    ("a100", 1555.0),
    ("a100-80g", 1935.0),
    ("a10g", 600.0),
    ("a30", 933.0),
    ("a40", 696.0),
    ("a800", 1935.0),
    ("h100", 3350.0),
    ("h200", 4800.0),
    ("h800", 3350.0),
    ("h20", 4000.0),
    ("k80", 240.0),
    ("l4", 300.0),
    ("l40", 864.0),
    ("m40", 288.0),
    ("m60", 160.0),
    ("p100", 732.0),
    ("p4", 192.0),
    ("p40", 347.0),
    ("rtx3090", 936.0),
    ("rtx4090", 1008.0),
    ("t4", 320.0),
    ("b200", 8000.0),
];

/// Slowness of the GPU kind called `name` (`V100`, `Tesla-V100-SXM2-16GB`, `NVIDIA A100`, `V100M32`, …).
pub(crate) fn slowness(name: &str) -> Slowness {
    let name = normal(name);
    if name.starts_with("v100") {
        return Slowness { log: 0.0, sd: 0.0 };
    }
    let known =
        BANDWIDTH.iter().filter(|(kind, _)| starts_with_product(&name, kind)).max_by_key(|(kind, _)| kind.len());
    match known {
        Some((_, bandwidth)) => Slowness { log: libm::log(V100_GB_PER_S / bandwidth), sd: KNOWN_SD },
        None => Slowness { log: 0.0, sd: UNKNOWN_SD },
    }
}

/// Whether `name` is `product` or goes on with something that is not a digit: `a10` is not `a100`.
fn starts_with_product(name: &str, product: &str) -> bool {
    name.strip_prefix(product).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Lower case, without the maker's words.
fn normal(name: &str) -> String {
    let mut name = name.to_ascii_lowercase();
    for word in ["nvidia", "tesla", "geforce"] {
        name = name.trim_start_matches([' ', '-', '_', '/']).trim_start_matches(word).to_owned();
    }
    name.trim_start_matches([' ', '-', '_', '/']).replace("rtx ", "rtx")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_spellings() {
        let check = |name: &str, log: f64, sd: f64| {
            let found = slowness(name);
            assert!((found.log - log).abs() < 1e-3 && found.sd == sd, "{name}: {found:?}");
        };
        check("V100", 0.0, 0.0);
        check("V100M32", 0.0, 0.0);
        check("Tesla-V100-SXM2-16GB", 0.0, 0.0);
        check("NVIDIA A100", libm::log(900.0 / 1555.0), KNOWN_SD);
        check("A10", libm::log(900.0 / 600.0), KNOWN_SD);
        check("P100", libm::log(900.0 / 732.0), KNOWN_SD);
        check("k80", libm::log(900.0 / 240.0), KNOWN_SD);
        check("T4", libm::log(900.0 / 320.0), KNOWN_SD);
        check("G3", 0.0, UNKNOWN_SD);
        check("", 0.0, UNKNOWN_SD);
    }
}
