//! What jobs ask for: jobs with the same profile are alike in all that placing and dividing looks at.

use std::collections::BTreeMap;

use coretuner_sdk::{ClassId, Job, KindId, ResizeRights};

/// Number of a profile, from [`Profiles::of`].
pub(crate) type ProfileId = u32;

/// Equal workers with whole GPUs: what this policy tunes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gang {
    pub(crate) workers: u32,
    pub(crate) gpus_per_worker: u32,
    /// Fewest and most workers that it may have; both `workers` unless it is elastic.
    pub(crate) workers_least: u32,
    pub(crate) workers_most: u32,
    /// Least and most of the whole gang.
    pub(crate) cpu_milli: (u32, u32),
    pub(crate) memory_mib: (u32, u32),
    pub(crate) rights: ResizeRights,
}

impl Gang {
    pub(crate) fn gpus(&self) -> u32 {
        self.workers.saturating_mul(self.gpus_per_worker)
    }

    /// GPUs of the fewest workers that it may have.
    pub(crate) fn gpus_least(&self) -> u32 {
        self.workers_least.saturating_mul(self.gpus_per_worker)
    }

    /// The same job with another number of workers.
    fn at(&self, workers: u32) -> Self {
        let scale = |all: u32| {
            let scaled = u64::from(all) * u64::from(workers) / u64::from(self.workers.max(1));
            u32::try_from(scaled).unwrap_or(u32::MAX)
        };
        let both = |(least, most): (u32, u32)| (scale(least), scale(most));
        Self { workers, cpu_milli: both(self.cpu_milli), memory_mib: both(self.memory_mib), ..self.clone() }
    }
}

/// Workers of one group of a job that is placed as requested.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Crew {
    pub(crate) group: u32,
    pub(crate) workers: u32,
    /// Per worker.
    pub(crate) gpu_milli: u32,
    pub(crate) cpu_milli: u32,
    pub(crate) memory_mib: u32,
}

/// How a job is handled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    Gang(Gang),
    /// CPU-only jobs, parts of a GPU, several groups: started at their request and left there.
    Fixed(Vec<Crew>),
}

/// What jobs of one profile share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Profile {
    pub(crate) kind: Option<KindId>,
    pub(crate) class: ClassId,
    pub(crate) form: Form,
}

impl Profile {
    fn new(job: &Job, elastic: bool) -> Self {
        Self { kind: job.kind, class: job.class, form: form(job, elastic) }
    }

    fn sized(&self, workers: u32) -> Option<Self> {
        let form = Form::Gang(self.gang()?.at(workers));
        Some(Self { form, ..self.clone() })
    }

    pub(crate) fn gang(&self) -> Option<&Gang> {
        match &self.form {
            Form::Gang(gang) => Some(gang),
            Form::Fixed(_) => None,
        }
    }

    /// Whole GPUs that it needs; shares do not count.
    pub(crate) fn gpus(&self) -> u32 {
        match &self.form {
            Form::Gang(gang) => gang.gpus(),
            Form::Fixed(crews) => crews.iter().map(|crew| crew.workers.saturating_mul(crew.gpu_milli / 1000)).sum(),
        }
    }
}

/// Most GPUs of an elastic gang: it stays on one node, and a node has at most so many devices.
const ELASTIC_GPUS_MAX: u32 = 32;

/// With `elastic`, a running job that may be restarted counts with the workers that it has.
fn form(job: &Job, elastic: bool) -> Form {
    let fixed = || {
        let crew = |(group, spec): (usize, &coretuner_sdk::Group)| Crew {
            group: group as u32,
            workers: spec.workers_min,
            gpu_milli: spec.gpu_milli,
            cpu_milli: spec.cpu_milli,
            memory_mib: spec.memory_mib,
        };
        Form::Fixed(job.groups.iter().enumerate().map(crew).filter(|crew| crew.workers > 0).collect())
    };
    let [group] = &job.groups[..] else { return fixed() };
    if group.gpus() == 0 || group.gpu_milli % 1000 != 0 || group.workers_min == 0 {
        return fixed();
    }
    let least = group.workers_min;
    let room = (ELASTIC_GPUS_MAX / group.gpus()).max(least);
    let most = if elastic && job.preemptible { group.workers_max.min(room).max(least) } else { least };
    let held: u32 = job.allocations.iter().map(|row| row.workers).sum();
    let workers = if job.is_running() { held.clamp(least, most) } else { least };
    let all = |one: u32| one.saturating_mul(workers);
    Form::Gang(Gang {
        workers,
        gpus_per_worker: group.gpus(),
        workers_least: least,
        workers_most: most,
        cpu_milli: (all(group.cpu_milli_min), all(group.cpu_milli_max.max(group.cpu_milli_min))),
        memory_mib: (all(group.memory_mib_min), all(group.memory_mib_max.max(group.memory_mib_min))),
        rights: group.resize,
    })
}

/// All profiles met so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profiles {
    profiles: Vec<Profile>,
    ids: BTreeMap<Profile, ProfileId>,
    /// Whether running jobs may change their number of workers.
    pub(crate) elastic: bool,
}

impl Profiles {
    pub(crate) fn of(&mut self, job: &Job) -> ProfileId {
        let profile = Profile::new(job, self.elastic);
        let id = self.add(profile.clone());
        if let Some(gang) = profile.gang() {
            for sized in (gang.workers_least..=gang.workers_most).filter_map(|workers| profile.sized(workers)) {
                self.add(sized);
            }
        }
        id
    }

    fn add(&mut self, profile: Profile) -> ProfileId {
        if let Some(&id) = self.ids.get(&profile) {
            return id;
        }
        let id = self.profiles.len() as ProfileId;
        self.profiles.push(profile.clone());
        self.ids.insert(profile, id);
        id
    }

    /// The profile of the same job with another number of workers, if it may have that.
    pub(crate) fn sized(&self, profile: ProfileId, workers: u32) -> Option<ProfileId> {
        self.ids.get(&self.get(profile).sized(workers)?).copied()
    }

    /// # Panics
    /// When the number is not from [`Profiles::of`].
    pub(crate) fn get(&self, profile: ProfileId) -> &Profile {
        &self.profiles[profile as usize]
    }
}
