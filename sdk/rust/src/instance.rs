//! A policy with its view of the cluster: the same path in a component and in native code.

use coretuner_contract::cluster::Delta;
use coretuner_contract::plan::{Plan, Verb};

use crate::changes::Changes;
use crate::cluster::{ApplyError, Cluster, Job};
use crate::host::HostHandle;
use crate::id::JobId;
use crate::plan::PlanBuilder;
use crate::policy::{Cycle, Policy, Reason, SavedState};
use crate::space::Space;

/// What a policy says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub name: &'static str,
    pub summary: &'static str,
    /// JSON Schema of the configuration.
    pub configuration_schema: String,
    pub reasons: &'static [Reason],
    pub state_version: u32,
}

/// Why a cycle has no answer; the instance must be replaced and sent a full image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceError {
    NotConfigured,
    Delta(ApplyError),
    /// A reason was given that `REASONS` does not list.
    UndeclaredReason(String),
}

impl std::fmt::Display for InstanceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConfigured => f.write_str("decide was called before configure"),
            Self::Delta(error) => write!(f, "cannot apply the delta: {error}"),
            Self::UndeclaredReason(code) => {
                write!(f, "the policy gave the reason `{code}`, which its REASONS do not list; add it there")
            }
        }
    }
}

impl std::error::Error for InstanceError {}

/// A running policy.
#[derive(Debug)]
pub struct Instance<P> {
    policy: Option<P>,
    cluster: Cluster,
    space: Space,
    changes: Changes,
    /// Jobs that the last plan started. What did not fit beside them may fit when one does not run after all, or is gone
    /// already: then no free resource of the view ever changed.
    started: Vec<JobId>,
    /// The policy is newer than the view: the next cycle shows everything as new.
    fresh: bool,
}

impl<P> Default for Instance<P> {
    fn default() -> Self {
        Self {
            policy: None,
            cluster: Cluster::default(),
            space: Space::default(),
            changes: Changes::default(),
            started: Vec::new(),
            fresh: false,
        }
    }
}

impl<P: Policy> Instance<P> {
    /// An instance without configuration and without a view.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the policy says about itself.
    pub fn describe() -> Description {
        let schema = schemars::schema_for!(P::Config);
        Description {
            name: P::NAME,
            summary: P::SUMMARY,
            configuration_schema: schema.as_value().to_string(),
            reasons: P::REASONS,
            state_version: P::STATE_VERSION,
        }
    }

    /// (Re)makes the policy from JSON; empty text or `null` means the defaults. On error the old one stays.
    pub fn configure(&mut self, json: &str) -> Result<(), String> {
        let json = json.trim();
        let config = if json.is_empty() || json == "null" {
            P::Config::default()
        } else {
            let mut reader = serde_json::Deserializer::from_str(json);
            let config = serde_path_to_error::deserialize(&mut reader)
                .map_err(|error| format!("at `{}`: {}", error.path(), error.inner()))?;
            reader.end().map_err(|error| error.to_string())?;
            config
        };
        self.policy = Some(P::new(config)?);
        self.fresh = true;
        Ok(())
    }

    /// Applies the delta and answers. After an error the instance is of no more use.
    pub fn decide(&mut self, delta: &Delta, mut host: HostHandle<'_>) -> Result<Plan, InstanceError> {
        let policy = self.policy.as_mut().ok_or(InstanceError::NotConfigured)?;
        self.changes.clear();
        self.cluster.apply(delta, &mut self.changes).map_err(InstanceError::Delta)?;
        self.space.sync(&self.cluster, &self.changes);
        let runs = |job: &JobId| self.cluster.job(*job).is_some_and(Job::is_running);
        self.changes.released |= !self.started.iter().all(runs);
        self.started.clear();
        if std::mem::take(&mut self.fresh) && !self.changes.image {
            self.changes.show_all(&self.cluster);
        }
        let plan = PlanBuilder::new(&self.cluster, &mut self.space);
        let host = host.reborrow();
        let mut cycle = Cycle { cluster: &self.cluster, changes: &self.changes, plan, host };
        policy.decide(&mut cycle);
        let plan = cycle.plan.finish();
        check_reasons(P::REASONS, &plan)?;
        let starts = plan.actions.verb.iter().zip(&plan.actions.job).filter(|(verb, _)| **verb == Verb::Start);
        self.started.extend(starts.map(|(_, job)| JobId(*job)));
        Ok(plan)
    }

    /// The policy's state for a successor; none when it keeps nothing.
    pub fn save_state(&self) -> Result<Option<SavedState>, String> {
        self.policy.as_ref().map_or(Ok(None), P::save_state)
    }

    /// Hands a predecessor's state to the policy, which may refuse it.
    pub fn restore_state(&mut self, state: SavedState) -> Result<(), String> {
        let policy = self.policy.as_mut().ok_or("restore-state was called before configure")?;
        policy.restore_state(state)
    }

    /// The view, for tests.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The policy itself, once configured, for tests.
    pub fn policy(&self) -> Option<&P> {
        self.policy.as_ref()
    }
}

fn check_reasons(declared: &[Reason], plan: &Plan) -> Result<(), InstanceError> {
    let known = |code: &str| declared.iter().any(|reason| reason.code == code);
    match plan.reasons.iter().find(|reason| !known(&reason.code)) {
        Some(reason) => Err(InstanceError::UndeclaredReason(reason.code.clone())),
        None => Ok(()),
    }
}
