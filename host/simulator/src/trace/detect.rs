//! Which format a file has.

use std::path::Path;

use super::error::TraceError;
use super::source;

/// Known trace formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Ours: CSV or JSON, `docs/traces.md`.
    Coretuner,
    Synergy,
    Gavel,
    Openb,
    Itp,
    Philly,
}

impl Format {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 6] = [Self::Coretuner, Self::Philly, Self::Itp, Self::Openb, Self::Gavel, Self::Synergy];

    /// As in `--format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coretuner => "coretuner",
            Self::Synergy => "synergy",
            Self::Gavel => "gavel",
            Self::Openb => "openb",
            Self::Itp => "itp",
            Self::Philly => "philly",
        }
    }

    /// By the first lines of the file.
    pub fn detect(path: &Path) -> Result<Self, TraceError> {
        let head = source::head(path, 4096)?;
        Self::of_text(&head).ok_or_else(|| TraceError::UnknownFormat { path: path.to_owned() })
    }

    fn of_text(head: &str) -> Option<Self> {
        let head = head.trim_start_matches('\u{feff}').trim_start();
        let first = head.lines().next()?.trim();
        let columns: Vec<&str> = first.split(',').map(str::trim).collect();
        let has = |names: &[&str]| names.iter().all(|name| columns.contains(name));
        if first.starts_with("# coretuner-jobs") || (first.starts_with('{') && head.contains("coretuner-trace")) {
            Some(Self::Coretuner)
        } else if has(&["timestamp", "duration", "num_gpus", "cluster"]) {
            Some(Self::Philly)
        } else if has(&["job_id", "submission_time", "duration", "num_gpu"]) {
            Some(Self::Itp)
        } else if has(&["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"]) {
            Some(Self::Openb)
        } else if matches!(first.split('\t').count(), 7 | 10) {
            Some(Self::Gavel)
        } else if is_synergy(&columns) {
            Some(Self::Synergy)
        } else {
            None
        }
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        let names = Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("`{name}` is no trace format; known are {names}"))
    }
}

fn is_synergy(columns: &[&str]) -> bool {
    let number = |index: usize| columns.get(index).is_some_and(|cell: &&str| cell.parse::<f64>().is_ok());
    columns.len() == 5 && number(0) && !number(1) && number(2) && number(3) && number(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_tell() {
        let check = |head: &str, expected| assert_eq!(Format::of_text(head), expected, "{head}");
        check("# coretuner-jobs v1\nname\n", Some(Format::Coretuner));
        check("{\n \"format\": \"coretuner-trace\"", Some(Format::Coretuner));
        check("timestamp,duration,num_gpus,gpu_time,cluster\n", Some(Format::Philly));
        check("job_id,submission_time,duration,num_gpu\n", Some(Format::Itp));
        check(
            "\u{feff}job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration",
            Some(Format::Itp),
        );
        check("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos", Some(Format::Openb));
        check("A3C\tcmd\t-n\t1\t10\t0.0\t1\n", Some(Format::Gavel));
        check("0,alexnet,0.0,3349,1\n", Some(Format::Synergy));
        check("hello\n", None);
        check("", None);
    }

    #[test]
    fn names_are_read_back() {
        assert!(Format::ALL.into_iter().all(|format| format.name().parse() == Ok(format)));
        assert!("nothing".parse::<Format>().is_err());
    }
}
