//! Microsoft ITP (ElasticFlow's traces): `job_id, submission_time, duration, num_gpu`, seconds from the start.

use std::path::Path;

use super::cluster::read_nodes;
use super::detect::Format;
use super::error::TraceError;
use super::read::display_name;
use super::rows::{Layout, Rows};
use super::source;
use super::synergy::GPUS_MAX;
use crate::workload::{Draft, DraftJob, Work};

const REQUIRED: [&str; 4] = ["job_id", "submission_time", "duration", "num_gpu"];
/// Added at random by ElasticFlow's authors.
const RANDOM: [&str; 4] = ["num_iteration", "model_name", "deadline", "batch_size"];

pub(crate) fn read(path: &Path, cluster: Option<&Path>) -> Result<Draft, TraceError> {
    let layout =
        Layout { delimiter: b',', columns: None, required: &REQUIRED, optional: Some(&RANDOM), comments: false };
    let mut rows = Rows::open(path, &layout)?;
    let mut jobs = Vec::new();
    let mut rules = Vec::new();
    while let Some(row) = rows.next()? {
        let name = row.name("job_id")?.to_owned();
        let work = Work::Duration(row.seconds("duration")?);
        let gpus = row.within("num_gpu", 1, GPUS_MAX)?;
        let mut job = DraftJob::of_gpus(row.line(), name, row.seconds("submission_time")?, gpus, work);
        if !row.text("deadline").is_empty() {
            job.deadline_ns = row.seconds("deadline")?;
            rules.push("I1 models, iterations and batches that ElasticFlow's authors drew at random are left out");
        }
        jobs.push(job);
    }
    rules.dedup();
    let nodes = cluster.map(read_nodes).transpose()?.unwrap_or_default();
    let files: Vec<&Path> = std::iter::once(path).chain(cluster).collect();
    Ok(Draft {
        name: display_name(Format::Itp, path),
        format: Format::Itp.name().to_owned(),
        digest: source::digest(&files)?,
        nodes,
        jobs,
        rules: rules.into_iter().map(str::to_owned).collect(),
        ..Draft::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;
    use super::*;

    #[test]
    fn good_and_bad_lines() {
        let read = |path: &Path| read(path, None);
        let raw = "job_id,submission_time,duration,num_gpu\na,1932025,2429,64\nb,5,1.5,1\n";
        check(read, raw, Ok(2));
        let more = "\u{feff}job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n\
                    a,5,10,bert,90,32,1,80\n";
        check(read, more, Ok(1));
        check(read, &raw.replace("2429", "x"), Err("line 2, column 3 (duration): `x` is no number"));
        check(read, &raw.replace("1.5,1", "1.5,0.5"), Err("line 3, column 4 (num_gpu): 0.5 is no whole number"));
        check(read, &raw.replace("num_gpu", "gpus"), Err("line 1: the header lacks column `num_gpu`"));
        check(read, &raw.replace("num_gpu", "num_gpu,extra"), Err("line 1: the header has an unknown column `extra`"));
        check(read, "", Err("the file is empty"));
    }
}
