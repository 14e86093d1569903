//! Nodes in our own format: `# coretuner-nodes v1`, then CSV.

use std::path::Path;

use coretuner_core::contract::DEVICES_MAX;
use coretuner_core::model::NodeSpec;

use super::coretuner::check_version;
use super::error::TraceError;
use super::rows::{Layout, Row, Rows};

/// First words of the first line.
pub(crate) const NODES_MARK: &str = "# coretuner-nodes";
pub(crate) const REQUIRED: [&str; 5] = ["name", "gpu_kind", "devices", "cpu_milli", "memory_mib"];
pub(crate) const OPTIONAL: [&str; 6] =
    ["count", "storage_mib_per_s", "device_memory_mib", "zone", "rack", "link_domain"];
/// Most nodes of a cluster.
const NODES_MAX: usize = 1_000_000;

pub(crate) fn read_nodes(path: &Path) -> Result<Vec<NodeSpec>, TraceError> {
    check_version(path, NODES_MARK)?;
    let layout =
        Layout { delimiter: b',', columns: None, required: &REQUIRED, optional: Some(&OPTIONAL), comments: true };
    let mut rows = Rows::open(path, &layout)?;
    let mut nodes = Vec::new();
    while let Some(row) = rows.next()? {
        add_nodes(&row, &mut nodes)?;
    }
    Ok(nodes)
}

fn add_nodes(row: &Row<'_>, nodes: &mut Vec<NodeSpec>) -> Result<(), TraceError> {
    let count = if row.text("count").is_empty() { 1 } else { row.within("count", 1, NODES_MAX as u32)? };
    if nodes.len() + count as usize > NODES_MAX {
        return Err(row.error("count", &format!("more than {NODES_MAX} nodes in all")));
    }
    let node = node(row)?;
    for index in 0..count {
        let name = if count == 1 { node.name.clone() } else { format!("{}-{index:05}", node.name) };
        nodes.push(NodeSpec { name, ..node.clone() });
    }
    Ok(())
}

fn node(row: &Row<'_>) -> Result<NodeSpec, TraceError> {
    let devices = row.within("devices", 0, DEVICES_MAX)?;
    let text = |column| Some(row.text(column).to_owned()).filter(|text| !text.is_empty());
    let number = |column| row.optional::<u32>(column).map(Option::unwrap_or_default);
    Ok(NodeSpec {
        name: row.name("name")?.to_owned(),
        gpu_kind: if devices > 0 { row.name("gpu_kind")?.to_owned() } else { String::new() },
        cpu_milli: row.within("cpu_milli", 1, u32::MAX)?,
        memory_mib: row.within("memory_mib", 1, u32::MAX)?,
        storage_mib_per_s: number("storage_mib_per_s")?,
        devices,
        device_memory_mib: number("device_memory_mib")?,
        zone: text("zone"),
        rack: text("rack"),
        link_domain: text("link_domain"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::file;
    use super::*;

    fn check(text: &str, expected: Result<usize, &str>) {
        match (read_nodes(file(text).path()), expected) {
            (Ok(nodes), Ok(count)) => assert_eq!(nodes.len(), count),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn good_and_bad_nodes() {
        let good = "# coretuner-nodes v1\nname,count,gpu_kind,devices,cpu_milli,memory_mib\n\
                    a,3,V100,8,24000,512000\nb,,,0,8000,1000\n";
        check(good, Ok(4));
        check(&good.replace("v1", "v2"), Err("version `v2` is not known; this build reads v1"));
        check(&good.replace("# coretuner-nodes v1\n", ""), Err("does not start with `# coretuner-nodes v1`"));
        check(&good.replace("V100,8", ",8"), Err("line 3, column 3 (gpu_kind): is empty"));
        check(
            &good.replace("V100,8", "V100,33"),
            Err("line 3, column 4 (devices): 33 is no whole number from 0 to 32"),
        );
    }
}
