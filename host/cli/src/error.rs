//! Every way in which the command ends badly, and the exit code of each.

use std::path::PathBuf;
use std::process::ExitCode;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

use crate::fetch::FetchError;
use crate::output::OutputError;
use crate::policy_config::ConfigError;
use crate::policy_file::PolicyFileError;
use crate::predictor::PredictorError;
use crate::simulation::RunError;
use crate::workload::WorkloadError;

/// Exit code for a run that failed.
const FAILED: u8 = 1;
/// Exit code for wrong usage; clap uses the same.
const USAGE: u8 = 2;
/// Exit code for a bad configuration or input (`EX_USAGE` of sysexits is 64).
const INPUT: u8 = 64;

/// What went wrong.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum CliError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    PolicyFile(#[from] PolicyFileError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Predictor(#[from] PredictorError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),
    #[error("the policy engine does not start: {0}")]
    Engine(#[from] coretuner_policy_host::EngineError),
    #[error("{path}: {source}", path = path.display())]
    #[diagnostic(help("`coretuner policy list` shows the policies found; `coretuner limits` shows the limits"))]
    Load { path: PathBuf, source: Box<coretuner_policy_host::LoadError> },
    #[error("not acceptable: {0}")]
    NotAcceptable(String),
    #[error("{0}")]
    Usage(String),
}

impl CliError {
    /// 1 failed, 2 usage, 64 bad configuration or input.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Output(_) | Self::Run(_) | Self::Engine(_) | Self::NotAcceptable(_) => FAILED,
            Self::Usage(_) => USAGE,
            Self::PolicyFile(_) | Self::Config(_) | Self::Workload(_) | Self::Load { .. } => INPUT,
            Self::Predictor(error) => {
                if error.is_input() {
                    INPUT
                } else {
                    FAILED
                }
            }
            Self::Fetch(error) => {
                if error.is_input() {
                    INPUT
                } else {
                    FAILED
                }
            }
        }
    }

    /// Prints the message on standard error and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
            .with_links(false)
            .with_wrap_lines(false)
            .with_context_lines(1);
        let text = match handler.render_report(&mut text, self) {
            Ok(()) => text,
            Err(_) => self.to_string(),
        };
        crate::output::note(&format!("coretuner failed\n{}", text.trim_end()));
        ExitCode::from(self.exit_code())
    }
}
