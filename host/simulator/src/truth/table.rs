//! Synergy's measured tables: throughput over cores and memory per GPU, relative to 3 cores and 62.5 GB.

/// Cores per GPU of the rows.
const CORES: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0];

/// Least memory per GPU of the columns, MiB: 20.83, 62.5, 125, 187.5 and 250 GB, floored to tens so that an exact
/// twenty-fourth of a server's memory still reaches its column.
const MEMORY_MIB: [u32; 5] = [21_330, 64_000, 128_000, 192_000, 256_000];

/// One model's table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CpuTable {
    /// `rows[cores][memory]`.
    pub(crate) rows: [[f64; 5]; 9],
}

impl CpuTable {
    /// Relative throughput: linear between rows (through zero below one core), stepwise over memory. Below the first
    /// memory column that column holds.
    pub(crate) fn relative(&self, cores: f64, memory_mib: u32) -> f64 {
        let column = column(memory_mib);
        let at = |row: usize| self.rows[row][column];
        if cores <= CORES[0] {
            return at(0) * cores.max(0.0) / CORES[0];
        }
        match CORES.iter().position(|grid| cores <= *grid) {
            None => at(CORES.len() - 1),
            Some(upper) if cores == CORES[upper] => at(upper),
            Some(upper) => {
                let part = (cores - CORES[upper - 1]) / (CORES[upper] - CORES[upper - 1]);
                at(upper - 1) + part * (at(upper) - at(upper - 1))
            }
        }
    }

    /// The most that any cores and memory give.
    pub(crate) fn best(&self) -> f64 {
        self.rows.iter().flatten().copied().fold(0.0, f64::max)
    }

    /// Fewest cores that give as much as any number of cores, with this memory.
    pub(crate) fn useful_cores(&self, memory_mib: u32) -> f64 {
        let column = column(memory_mib);
        let peak = self.rows.iter().map(|row| row[column]).fold(0.0, f64::max);
        let row = self.rows.iter().position(|row| row[column] >= peak).unwrap_or(CORES.len() - 1);
        CORES[row]
    }
}

/// Least memory per GPU at which the tables were measured, MiB.
pub(crate) const LEAST_MEMORY_MIB: u32 = MEMORY_MIB[0];

fn column(memory_mib: u32) -> usize {
    MEMORY_MIB.iter().rposition(|least| memory_mib >= *least).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alexnet() -> CpuTable {
        let row = |low: f64, rest: f64| [0.1, low, rest, rest, rest];
        CpuTable {
            rows: [
                row(0.3, 0.3),
                row(0.66, 0.66),
                row(1.0, 1.0),
                row(1.25, 1.25),
                row(1.53, 1.53),
                row(1.75, 1.75),
                row(2.0, 2.0),
                row(2.0, 2.94),
                row(2.0, 2.94),
            ],
        }
    }

    fn check(cores: f64, memory_mib: u32, expected: f64) {
        let got = alexnet().relative(cores, memory_mib);
        assert!((got - expected).abs() < 1e-12, "{cores} cores, {memory_mib} MiB: {got}, not {expected}");
    }

    #[test]
    fn cores_are_interpolated_and_memory_is_floored() {
        check(0.5, 64_000, 0.15);
        check(3.0, 64_000, 1.0);
        check(3.0, 63_999, 0.1);
        check(3.0, 1, 0.1);
        check(7.0, 64_000, 1.75 + 0.25 / 3.0);
        check(10.0, 128_000, 2.0 + 0.94 / 3.0);
        check(12.0, 127_999, 2.0);
        check(100.0, 512_000, 2.94);
    }

    #[test]
    fn best_and_useful_cores_are_known() {
        assert_eq!(alexnet().best(), 2.94);
        assert_eq!(alexnet().useful_cores(64_000), 9.0);
        assert_eq!(alexnet().useful_cores(128_000), 12.0);
        assert_eq!(alexnet().useful_cores(0), 1.0);
    }

    #[test]
    fn a_share_of_a_servers_memory_reaches_its_column() {
        for (twenty_fourths, column_at) in [(1, 0), (3, 1), (6, 2), (9, 3), (12, 4)] {
            assert_eq!(column(512_000 * twenty_fourths / 24), column_at);
        }
    }
}
