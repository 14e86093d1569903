//! Capabilities: what a policy may import from the host.

use std::collections::BTreeSet;
use std::str::FromStr;

/// An import interface of the contract that does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    Log,
    Predict,
    Kv,
    Metrics,
    JobDetails,
}

impl Capability {
    /// Every capability, in the contract's order.
    pub const ALL: [Self; 5] = [Self::Log, Self::Predict, Self::Kv, Self::Metrics, Self::JobDetails];

    /// Name of the interface in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Predict => "predict",
            Self::Kv => "kv",
            Self::Metrics => "metrics",
            Self::JobDetails => "job-details",
        }
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|one| one.name() == text).ok_or_else(|| UnknownCapability(text.to_owned()))
    }
}

/// A name that is no capability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no capability named `{0}`; there are log, predict, kv, metrics and job-details")]
pub struct UnknownCapability(pub String);

/// Capabilities that the operator grants to a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Grants(BTreeSet<Capability>);

impl Grants {
    /// Nothing is granted.
    pub fn none() -> Self {
        Self::default()
    }

    /// Every capability of the contract.
    pub fn all() -> Self {
        Self(Capability::ALL.into_iter().collect())
    }

    /// Whether this capability is granted.
    pub fn contains(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// What is granted, in the contract's order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> {
        self.0.iter().copied()
    }
}

impl FromIterator<Capability> for Grants {
    fn from_iter<I: IntoIterator<Item = Capability>>(list: I) -> Self {
        Self(list.into_iter().collect())
    }
}
