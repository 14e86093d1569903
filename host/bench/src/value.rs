//! One measured number.

use crate::error::Error;
use crate::statistics::Estimate;
use serde::{Deserialize, Serialize};

/// A number with its unit and, where the project has one, its goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Value {
    /// Unique within the figure.
    pub(crate) label: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    /// 95 % confidence interval of `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interval: Option<(f64, f64)>,
    /// What `value` is compared with by `op`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<f64>,
    /// `<=` or `>=`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) op: Option<String>,
}

impl Value {
    /// A number without a goal.
    pub(crate) fn new(label: impl Into<String>, value: f64, unit: &str) -> Self {
        Self { label: label.into(), value, unit: unit.to_owned(), interval: None, goal: None, op: None }
    }

    /// A mean with its confidence interval.
    pub(crate) fn estimate(label: impl Into<String>, estimate: Estimate, unit: &str) -> Self {
        Self { interval: estimate.interval, ..Self::new(label, estimate.mean, unit) }
    }

    /// The same number with a goal that it should not exceed.
    pub(crate) fn at_most(self, goal: f64) -> Self {
        Self { goal: Some(goal), op: Some("<=".to_owned()), ..self }
    }

    /// The same number with a goal that it should reach.
    pub(crate) fn at_least(self, goal: f64) -> Self {
        Self { goal: Some(goal), op: Some(">=".to_owned()), ..self }
    }
}

/// Prints the list as one line of JSON.
pub(crate) fn print(values: &[Value]) -> Result<(), Error> {
    println!("{}", serde_json::to_string(values)?);
    Ok(())
}
