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
    /// Least and most of the whole gang.
    pub(crate) cpu_milli: (u32, u32),
    pub(crate) memory_mib: (u32, u32),
    pub(crate) rights: ResizeRights,
}

impl Gang {
    pub(crate) fn gpus(&self) -> u32 {
        self.workers.saturating_mul(self.gpus_per_worker)
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
    fn new(job: &Job) -> Self {
        Self { kind: job.kind, class: job.class, form: form(job) }
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

fn form(job: &Job) -> Form {
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
    let all = |one: u32| one.saturating_mul(group.workers_min);
    Form::Gang(Gang {
        workers: group.workers_min,
        gpus_per_worker: group.gpus(),
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
}

impl Profiles {
    pub(crate) fn of(&mut self, job: &Job) -> ProfileId {
        let profile = Profile::new(job);
        if let Some(&id) = self.ids.get(&profile) {
            return id;
        }
        let id = self.profiles.len() as ProfileId;
        self.profiles.push(profile.clone());
        self.ids.insert(profile, id);
        id
    }

    /// # Panics
    /// When the number is not from [`Profiles::of`].
    pub(crate) fn get(&self, profile: ProfileId) -> &Profile {
        &self.profiles[profile as usize]
    }
}
