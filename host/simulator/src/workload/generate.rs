//! The published Synergy workload definition (OSDI '22): arrivals, durations, GPU demand and model mix.

use std::path::Path;

use coretuner_core::model::TimeNs;
use libm::log;
use serde::Serialize;

use super::assign::Mix;
use super::cluster::synergy_server;
use super::complete::{FillOptions, complete};
use super::draft::{Draft, DraftJob, Work};
use super::types::Workload;
use crate::random::Random;
use crate::trace::TraceError;
use crate::truth::TruthOptions;

/// GPU demand of a generated job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gangs {
    /// 1, 2, 4, 8 GPUs with 70, 10, 15, 5 %.
    #[default]
    Published,
    /// One GPU each.
    Single,
}

const GANG_SIZES: [u32; 4] = [1, 2, 4, 8];
const GANG_WEIGHTS: [u32; 4] = [70, 10, 15, 5];

/// What to generate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GenerateOptions {
    pub jobs: u32,
    /// Mean of exponential arrivals.
    pub load_jobs_per_hour: f64,
    pub mix: Mix,
    pub gangs: Gangs,
    /// Servers of 8 GPUs and 500 GB.
    pub servers: u32,
    /// 24 in the publication's default cluster.
    pub cores_per_server: u32,
    pub seed: u64,
    #[serde(skip)]
    pub truth: TruthOptions,
}

impl Default for GenerateOptions {
    /// The paper's cluster of 128 GPUs, 9 jobs per hour.
    fn default() -> Self {
        Self {
            jobs: 1000,
            load_jobs_per_hour: 9.0,
            mix: Mix::default(),
            gangs: Gangs::default(),
            servers: 16,
            cores_per_server: 24,
            seed: 1,
            truth: TruthOptions::default(),
        }
    }
}

/// The arrival rate at which jobs at their proportional share ask for `utilisation` of the GPU time.
pub fn jobs_per_hour_for(utilisation: f64, servers: u32, gangs: Gangs) -> f64 {
    let per_decade = |low: f64, high: f64, decades: f64| (high - low) / (decades * log(10.0));
    let minutes = 0.8 * per_decade(10.0 * libm::sqrt(10.0), 1000.0, 1.5) + 0.2 * per_decade(1000.0, 10_000.0, 1.0);
    let gpus: f64 = match gangs {
        Gangs::Single => 1.0,
        Gangs::Published => {
            GANG_SIZES.iter().zip(GANG_WEIGHTS).map(|(size, weight)| f64::from(size * weight)).sum::<f64>() / 100.0
        }
    };
    utilisation * f64::from(servers) * 8.0 / (gpus * minutes / 60.0)
}

/// Draws a workload; the same options give the same workload.
pub fn generate(options: &GenerateOptions) -> Result<Workload, TraceError> {
    if !(options.load_jobs_per_hour > 0.0 && options.load_jobs_per_hour.is_finite()) {
        return Err(TraceError::Options("the load must be more than 0 jobs per hour".to_owned()));
    }
    if options.jobs == 0 || options.servers == 0 || !(1..=4000).contains(&options.cores_per_server) {
        return Err(TraceError::Options("generate at least one job, one server and 1 to 4000 cores".to_owned()));
    }
    let mut draft = Draft {
        name: "generated (Synergy workload definition)".to_owned(),
        format: "generated".to_owned(),
        digest: digest(options)?,
        jobs: draw_jobs(options),
        rules: vec![format!(
            "G1 arrivals exponential, durations 10^U(1.5,3) min with p=0.8 else 10^U(3,4) min, GPUs {}",
            match options.gangs {
                Gangs::Published => "1:70% 2:10% 4:15% 8:5%",
                Gangs::Single => "1",
            }
        )],
        ..Draft::default()
    };
    for index in 0..options.servers as usize {
        let mut server = synergy_server(index);
        server.cpu_milli = options.cores_per_server * 1000;
        draft.nodes.push(server);
    }
    let fill = FillOptions { seed: options.seed, mix: options.mix, truth: options.truth, ..FillOptions::default() };
    let mut workload = complete(draft, Path::new("generated workload"), &fill)?;
    workload.info.load_jobs_per_hour = Some(options.load_jobs_per_hour);
    Ok(workload)
}

fn draw_jobs(options: &GenerateOptions) -> Vec<DraftJob> {
    let mut arrivals = Random::new(options.seed, "arrivals");
    let mut durations = Random::new(options.seed, "durations");
    let mut gangs = Random::new(options.seed, "gangs");
    let mut at_s = 0.0;
    (0..options.jobs)
        .map(|index| {
            at_s += arrivals.exponential(3600.0 / options.load_jobs_per_hour);
            let short = durations.unit() < 0.8;
            let minutes = if short { durations.power_of_ten(1.5, 3.0) } else { durations.power_of_ten(3.0, 4.0) };
            let gpus = match options.gangs {
                Gangs::Single => 1,
                Gangs::Published => GANG_SIZES[gangs.weighted(&GANG_WEIGHTS)],
            };
            let work = Work::Duration((minutes * 60e9) as TimeNs);
            DraftJob::of_gpus(u64::from(index) + 1, format!("job-{index:06}"), (at_s * 1e9) as TimeNs, gpus, work)
        })
        .collect()
}

fn digest(options: &GenerateOptions) -> Result<String, TraceError> {
    let text = serde_json::to_string(options).map_err(|error| TraceError::Options(error.to_string()))?;
    Ok(format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_options_give_the_same_workload() {
        let options = GenerateOptions { jobs: 50, ..GenerateOptions::default() };
        let (first, second) = (generate(&options), generate(&options));
        let (first, second) = (first.expect("valid"), second.expect("valid"));
        assert_eq!(format!("{:?}", first.jobs), format!("{:?}", second.jobs));
        assert_eq!(first.info, second.info);
        let other = generate(&GenerateOptions { seed: 2, ..options }).expect("valid");
        assert_ne!(format!("{:?}", first.jobs), format!("{:?}", other.jobs));
    }

    #[test]
    fn draws_follow_the_definition() {
        let options = GenerateOptions { jobs: 20_000, ..GenerateOptions::default() };
        let workload = generate(&options).expect("valid");
        let last_h = workload.jobs.last().expect("jobs").spec.submit_ns as f64 / 3.6e12;
        assert!((20_000.0 / last_h / 9.0 - 1.0).abs() < 0.03, "{last_h}");
        let gpus: u32 = workload.jobs.iter().map(TraceJob::gpus).sum();
        assert!((f64::from(gpus) / 20_000.0 / 1.9 - 1.0).abs() < 0.03, "{gpus}");
        let hours: f64 = workload.jobs.iter().map(|job| workload.alone_s(job) / 3600.0).sum();
        let load = jobs_per_hour_for(1.0, 16, Gangs::Single);
        assert!((hours / 20_000.0 * load / 128.0 - 1.0).abs() < 0.05, "{hours} {load}");
    }

    #[test]
    fn requests_are_the_proportional_share() {
        let workload = generate(&GenerateOptions { jobs: 1, ..GenerateOptions::default() }).expect("valid");
        let group = &workload.jobs[0].spec.groups[0];
        assert_eq!((group.cpu_milli, group.cpu_milli_min, group.cpu_milli_max), (3000, 1000, 24_000));
        assert_eq!((group.memory_mib, group.memory_mib_min, group.memory_mib_max), (64_000, 21_330, 512_000));
    }

    #[test]
    fn senseless_options_are_refused() {
        let check = |options: GenerateOptions| assert!(generate(&options).is_err(), "{options:?}");
        check(GenerateOptions { jobs: 0, ..GenerateOptions::default() });
        check(GenerateOptions { load_jobs_per_hour: 0.0, ..GenerateOptions::default() });
        check(GenerateOptions { servers: 0, ..GenerateOptions::default() });
    }

    use crate::workload::TraceJob;
}
