//! Alibaba's openb GPU cluster of 2023: pods with CPU, memory, GPU shares and allowed GPU kinds, and a node list.

use std::path::{Path, PathBuf};

use coretuner_core::contract::DEVICES_MAX;
use coretuner_core::model::NodeSpec;

use super::cluster::read_nodes;
use super::detect::Format;
use super::error::TraceError;
use super::read::display_name;
use super::rows::{Layout, Row, Rows};
use super::source;
use crate::workload::{Draft, DraftJob, Extent, Work, synergy_server};

const PODS: [&str; 11] = [
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
];
const NODES: [&str; 5] = ["sn", "cpu_milli", "memory_mib", "gpu", "model"];
/// Looked for beside the trace.
const NODES_FILE: &str = "openb_node_list_all_node.csv";

pub(crate) fn read(path: &Path, cluster: Option<&Path>) -> Result<Draft, TraceError> {
    let layout = Layout { delimiter: b',', columns: None, required: &PODS, optional: Some(&[]), comments: false };
    let mut rows = Rows::open(path, &layout)?;
    let (mut jobs, mut unscheduled) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        match pod(&row)? {
            Some(job) => jobs.push(job),
            None => unscheduled += 1,
        }
    }
    let cluster = cluster.map_or_else(|| path.with_file_name(NODES_FILE), PathBuf::from);
    let nodes = read_cluster(&cluster)?;
    let rules = vec![
        format!("A1 {unscheduled} pods that were never scheduled are left out; duration = deletion - scheduling"),
        "A2 a pod is one worker; service classes BE, Burstable, LS, Guaranteed are tiers 0 to 3, the first two \
         preemptible"
            .to_owned(),
        "A3 CPU of GPU pods may be tuned from 1 core per GPU up; memory, and CPU of pods without GPU, may not"
            .to_owned(),
    ];
    Ok(Draft {
        name: display_name(Format::Openb, path),
        format: Format::Openb.name().to_owned(),
        digest: source::digest(&[path, &cluster])?,
        nodes,
        jobs,
        portable_models: true,
        rules,
        ..Draft::default()
    })
}

/// `None` for a pod that never ran.
fn pod(row: &Row<'_>) -> Result<Option<DraftJob>, TraceError> {
    let gpus = row.within("num_gpu", 0, DEVICES_MAX)?;
    let share = row.within("gpu_milli", 0, 1000)?;
    if gpus > 0 && (share == 0 || (gpus > 1 && share < 1000)) {
        return Err(row.error("gpu_milli", &format!("{share} thousandths of each of {gpus} GPUs cannot be modelled")));
    }
    let cpu = row.within("cpu_milli", 0, u32::MAX)?;
    let (tier, preemptible) = service_class(row)?;
    if row.text("scheduled_time").is_empty() {
        return Ok(None);
    }
    let (scheduled, deleted) = (row.seconds("scheduled_time")?, row.seconds("deletion_time")?);
    let work = Work::Duration(deleted.saturating_sub(scheduled));
    let kinds = row.text("gpu_spec").split('|').filter(|kind| !kind.is_empty()).map(str::to_owned);
    let least = (1000 * gpus).min(cpu);
    let job = DraftJob::of_gpus(row.line(), row.name("name")?.to_owned(), row.seconds("creation_time")?, 1, work);
    Ok(Some(DraftJob {
        gpu_milli: if gpus > 1 { gpus * 1000 } else { gpus * share },
        cpu_milli: if gpus == 0 {
            Extent::rigid(cpu)
        } else {
            Extent { request: Some(cpu), min: Some(least), max: None }
        },
        memory_mib: Extent::rigid(row.within("memory_mib", 0, u32::MAX)?),
        gpu_kinds: kinds.collect(),
        tier,
        preemptible,
        ..job
    }))
}

fn service_class(row: &Row<'_>) -> Result<(u8, bool), TraceError> {
    match row.text("qos") {
        "BE" => Ok((0, true)),
        "Burstable" => Ok((1, true)),
        "LS" => Ok((2, false)),
        "Guaranteed" => Ok((3, false)),
        other => Err(row.error("qos", &format!("`{other}` is none of BE, Burstable, LS, Guaranteed"))),
    }
}

/// Alibaba's node list, or our own nodes.
fn read_cluster(path: &Path) -> Result<Vec<NodeSpec>, TraceError> {
    if !source::head(path, 64)?.starts_with("sn,") {
        return read_nodes(path);
    }
    let layout = Layout { delimiter: b',', columns: None, required: &NODES, optional: Some(&[]), comments: false };
    let mut rows = Rows::open(path, &layout)?;
    let mut nodes = Vec::new();
    while let Some(row) = rows.next()? {
        let devices = row.within("gpu", 0, DEVICES_MAX)?;
        let gpu_kind = if devices > 0 { row.name("model")? } else { "" };
        nodes.push(NodeSpec {
            name: row.name("sn")?.to_owned(),
            gpu_kind: gpu_kind.to_owned(),
            devices,
            cpu_milli: row.within("cpu_milli", 1, u32::MAX)?,
            memory_mib: row.within("memory_mib", 1, u32::MAX)?,
            storage_mib_per_s: 0,
            ..synergy_server(0)
        });
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{check, file};
    use super::*;

    const HEADER: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";

    fn nodes() -> tempfile::NamedTempFile {
        file("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,64000,262144,2,P100\nn2,96000,393216,4,T4\n")
    }

    #[test]
    fn good_and_bad_lines() {
        let nodes = nodes();
        let read = |path: &Path| read(path, Some(nodes.path()));
        let good = format!(
            "{HEADER}p0,12000,16384,1,1000,,LS,Running,0,600,5\np1,6000,12288,1,460,P100|T4,BE,Failed,7,90,9\n\
             p2,6000,12288,0,0,,BE,Pending,7,90,\n"
        );
        check(read, &good, Ok(2));
        check(read, &good.replace("LS", "XL"), Err("line 2, column 7 (qos): `XL` is none of"));
        check(read, &good.replace("1,460", "2,460"), Err("line 3, column 5 (gpu_milli): 460 thousandths of each of 2"));
        check(read, &good.replace("12000", "1.5"), Err("line 2, column 2 (cpu_milli): 1.5 is no whole number"));
        check(read, "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n", Err("the header lacks column `gpu_spec`"));
    }

    #[test]
    fn shares_kinds_and_classes_are_kept() {
        let text =
            format!("{HEADER}p1,6000,12288,1,460,P100|T4,BE,Failed,7,90,9\np2,500,64,8,1000,,LS,Running,7,90,9\n");
        let draft = read(file(&text).path(), Some(nodes().path())).expect("valid");
        let (share, many) = (&draft.jobs[0], &draft.jobs[1]);
        assert_eq!((share.gpu_milli, share.gpu_kinds.len(), share.tier, share.preemptible), (460, 2, 0, true));
        assert_eq!((share.work, share.submit_ns), (Work::Duration(81_000_000_000), 7_000_000_000));
        assert_eq!((many.gpu_milli, many.workers, many.cpu_milli.min), (8000, 1, Some(500)));
    }
}
