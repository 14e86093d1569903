//! Speeds of ten models by cores and memory, for tests.
//!
//! Source: the simulator tables of Synergy (OSDI '22), repository `msr-fiddle/synergy`, folder `simulator/models`, one
//! GPU; MIT licence, copyright (c) 2015 - present Microsoft Corporation. Numbers only, in a form of our own: speed per
//! GPU relative to that at 3 cores and 62.5 GB, on a server of 8 GPUs, 24 cores and 500 GB.
#![allow(clippy::panic, clippy::expect_used, reason = "only tests use it, and they may fail")]

use super::options::{Amount, Floor, Options, Surface, options};

/// Cores per GPU of the profiled grid.
pub const CORES: [u32; 9] = [1, 2, 3, 4, 5, 6, 9, 12, 24];

/// Memory per GPU of the profiled grid in 24ths of the server: 20.83, 62.5, 125, 187.5 and 250 GB.
pub const MEMORY_UNITS: [u32; 5] = [1, 3, 6, 9, 12];

/// Cores and memory units of the server.
pub const SERVER: Amount = Amount { cpu: 24, memory: 24 };

/// Cores and memory units that belong to one GPU of the server.
pub const SHARE_PER_GPU: Amount = Amount { cpu: 3, memory: 3 };

/// How a model's speed depends on memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Memory {
    /// Not at all (language models).
    None,
    /// 0.1 below 62.5 GB, indifferent above.
    Cached,
    /// The same, and from 12 cores on the second number at 125 GB or more.
    Large(f64),
    /// The same, and from 6 cores on 2.0 at 125 GB and 2.5 at 187.5 GB or more.
    Audio,
}

/// One model of the tables.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    pub name: &'static str,
    /// Seconds per iteration at the share.
    pub iteration_s: f64,
    /// Relative speed at 62.5 GB by [`CORES`].
    by_cores: [f64; 9],
    memory: Memory,
    /// The full demand per GPU that the tables state: cores and GB.
    pub best: (u32, f64),
}

const SLOW_INPUT: [f64; 9] = [0.30, 0.66, 1.0, 1.25, 1.53, 1.75, 2.0, 2.0, 2.0];
const FLAT: [f64; 9] = [1.0; 9];

/// The ten measured models (`bert` and `vae` of the source are placeholders).
#[rustfmt::skip]
pub const MODELS: [Model; 10] = [
    Model { name: "alexnet", iteration_s: 0.600, by_cores: SLOW_INPUT, memory: Memory::Large(2.94), best: (12, 125.0) },
    Model { name: "shufflenet", iteration_s: 0.615, by_cores: SLOW_INPUT, memory: Memory::Large(2.89), best: (12, 125.0) },
    Model { name: "res18", iteration_s: 0.640, by_cores: [0.37, 0.72, 1.0, 1.3, 1.53, 1.75, 2.4, 2.4, 2.4], memory: Memory::Cached, best: (9, 62.5) },
    Model { name: "mobilenet", iteration_s: 0.710, by_cores: [0.37, 0.72, 1.0, 1.3, 1.49, 1.55, 1.55, 1.55, 1.55], memory: Memory::Cached, best: (6, 62.5) },
    Model { name: "res50", iteration_s: 0.780, by_cores: [0.40, 0.74, 1.0, 1.15, 1.15, 1.15, 1.15, 1.15, 1.15], memory: Memory::Cached, best: (4, 62.5) },
    Model { name: "m5", iteration_s: 0.600, by_cores: [0.30, 0.66, 1.0, 1.2, 1.4, 1.5, 1.5, 1.5, 1.5], memory: Memory::Audio, best: (6, 187.5) },
    Model { name: "deepspeech", iteration_s: 0.757, by_cores: [0.30, 0.66, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], memory: Memory::Cached, best: (3, 62.5) },
    Model { name: "gnmt", iteration_s: 0.120, by_cores: FLAT, memory: Memory::None, best: (1, 20.0) },
    Model { name: "transformer", iteration_s: 0.670, by_cores: FLAT, memory: Memory::None, best: (1, 20.0) },
    Model { name: "lstm", iteration_s: 0.011, by_cores: FLAT, memory: Memory::None, best: (1, 20.0) },
];

/// The model of that name.
///
/// # Panics
/// When the tables have none.
pub fn model(name: &str) -> &'static Model {
    MODELS.iter().find(|model| model.name == name).unwrap_or_else(|| panic!("no model `{name}` in the tables"))
}

impl Model {
    /// Relative speed at a row of [`CORES`] and a column of [`MEMORY_UNITS`].
    pub fn cell(&self, row: usize, column: usize) -> f64 {
        match self.memory {
            Memory::None => self.by_cores[row],
            _ if column == 0 => 0.1,
            Memory::Large(fast) if CORES[row] >= 12 && column >= 2 => fast,
            Memory::Audio if CORES[row] >= 6 && column == 2 => 2.0,
            Memory::Audio if CORES[row] >= 6 && column >= 3 => 2.5,
            _ => self.by_cores[row],
        }
    }

    /// Relative speed at `cores` and `memory_units` per GPU: linear between rows (below one core in proportion),
    /// memory rounded down to a column, as a data set is cached or not.
    pub fn relative_speed(&self, cores: f64, memory_units: f64) -> f64 {
        let column = MEMORY_UNITS.iter().rposition(|&units| f64::from(units) <= memory_units + 1e-9).unwrap_or(0);
        let Some(row) = CORES.iter().rposition(|&row| f64::from(row) <= cores + 1e-9) else {
            return self.cell(0, column) * cores;
        };
        let Some(&next) = CORES.get(row + 1) else { return self.cell(row, column) };
        let weight = (cores - f64::from(CORES[row])) / f64::from(next - CORES[row]);
        self.cell(row, column) + weight * (self.cell(row + 1, column) - self.cell(row, column))
    }
}

/// Options of a job of that model with `gpus` GPUs on the server, in cores and memory units.
pub fn options_of(name: &str, gpus: u32, floor: Floor) -> Options {
    let model = model(name);
    let cpu: Vec<u32> = (gpus..=SERVER.cpu).collect();
    let memory: Vec<u32> = MEMORY_UNITS.iter().map(|units| units * gpus).filter(|&all| all <= SERVER.memory).collect();
    let per_gpu = |all: u32| f64::from(all) / f64::from(gpus);
    let speed: Vec<f32> = cpu
        .iter()
        .flat_map(|&cpu| memory.iter().map(move |&memory| (cpu, memory)))
        .map(|(cpu, memory)| model.relative_speed(per_gpu(cpu), per_gpu(memory)) as f32)
        .collect();
    let share = Amount { cpu: SHARE_PER_GPU.cpu * gpus, memory: SHARE_PER_GPU.memory * gpus };
    let surface = Surface { cpu: &cpu, memory: &memory, speed: &speed };
    options(surface, share, f64::from(gpus), floor).expect("the tables know the share")
}
