//! Whether the committed model is what the training script makes of the committed tables.

use crate::error::Error;
use crate::files;
use crate::process::shown;
use crate::step::{Done, Steps};
use std::io::ErrorKind;
use std::process::{Command, ExitStatus, Stdio};

/// What `models/train.py` exits with when its packages are missing.
const PACKAGES_MISSING: i32 = 3;

/// Trains again and compares, where Python and its packages are here.
pub(crate) fn check(steps: &mut Steps) {
    let models = files::root().join("models");
    // The environment that models/README.md makes, else the system's.
    let own = models.join(".venv/bin/python");
    let mut command = if own.is_file() { Command::new(own) } else { Command::new("python3") };
    command.arg(models.join("train.py")).arg("--check");
    // It must not leave compiled files in the source tree.
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null());
    steps.attempt("model: as trained", || verdict(&shown(&command), command.status()));
}

fn verdict(command: &str, ended: std::io::Result<ExitStatus>) -> Result<Done, Error> {
    let command = command.to_owned();
    match ended {
        Ok(status) if status.success() => Ok(Done::Worked),
        Ok(status) if status.code() == Some(PACKAGES_MISSING) => {
            let advice = "`pip install -r models/requirements.txt`";
            Ok(Done::Skipped(format!("the training script's Python packages are not installed ({advice})")))
        }
        Ok(status) => {
            let output = "; train again with models/train.py, or take back what changed".to_owned();
            Err(Error::Failed { command, status: status.to_string(), output })
        }
        Err(source) if source.kind() == ErrorKind::NotFound => Ok(Done::Skipped("python3 is not installed".to_owned())),
        Err(source) => Err(Error::Start { command, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn what_is_missing_is_skipped_and_drift_fails() {
        let check = |ended: std::io::Result<i32>, expected: &str| {
            let ended = ended.map(|code| ExitStatus::from_raw(code << 8));
            let said = match verdict("train", ended) {
                Ok(Done::Worked) => "ok".to_owned(),
                Ok(Done::Skipped(why)) => format!("skipped: {why}"),
                Err(error) => error.to_string(),
            };
            assert!(said.contains(expected), "{said}");
        };
        check(Ok(0), "ok");
        check(Ok(3), "skipped: the training script's Python packages are not installed");
        check(Ok(1), "`train` failed (exit status: 1); train again");
        check(Err(ErrorKind::NotFound.into()), "skipped: python3 is not installed");
        check(Err(ErrorKind::PermissionDenied.into()), "failed to start `train`");
    }
}
