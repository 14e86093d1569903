//! Jobs that are placed as requested: CPU-only jobs, parts of a GPU, jobs of several groups.

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{Allocation, JobId, NodeId};

use crate::berth::Berth;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::members::value;
use crate::profile::{Crew, ProfileId};

/// Nodes weighed for a worker: those with most to spare.
const WEIGHED_MAX: usize = 256;

/// Places all workers of a job: on one node if one has room, else worker by worker. Nothing changes when it fails.
pub(crate) fn place_fixed(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    job: JobId,
    profile: ProfileId,
    crews: &[Crew],
) -> bool {
    draft.try_out();
    let rows = on_one_node(desk, draft, profile, crews).or_else(|| spread(desk, draft, profile, crews));
    draft.take_back();
    match rows {
        Some(rows) if !rows.is_empty() => {
            draft.set_apart(job, rows);
            true
        }
        _ => false,
    }
}

fn on_one_node(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    profile: ProfileId,
    crews: &[Crew],
) -> Option<Vec<Allocation>> {
    let need = (total(crews), share(crews));
    let node = best_node(desk, draft, profile, &|desk, berth| fits_all(desk, berth, crews), need)?;
    Some(crews.iter().map(|crew| row(crew, node, crew.workers)).collect())
}

fn fits_all(desk: &Desk<'_, '_>, berth: &Berth, crews: &[Crew]) -> bool {
    let mut trial = berth.clone();
    crews.iter().all(|crew| {
        let fits = fits(desk, &trial, crew, crew.workers);
        trial.reserve(amount(crew, crew.workers));
        take(&mut trial, crew, crew.workers);
        fits
    })
}

fn spread(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    profile: ProfileId,
    crews: &[Crew],
) -> Option<Vec<Allocation>> {
    let mut rows: Vec<Allocation> = Vec::new();
    for crew in crews {
        for _ in 0..crew.workers {
            let need = (amount(crew, 1), share(std::slice::from_ref(crew)));
            let node = best_node(desk, draft, profile, &|desk, berth| fits(desk, berth, crew, 1), need)?;
            draft.edit(node, |berth| {
                berth.reserve(amount(crew, 1));
                take(berth, crew, 1);
            });
            match rows.iter_mut().find(|row| (row.group, row.node) == (crew.group, node)) {
                Some(held) => *held = row(crew, node, held.workers + 1),
                None => rows.push(row(crew, node, 1)),
            }
        }
    }
    Some(rows)
}

/// Without GPUs: nodes without GPUs first, then where least is lost, then where most CPU is left. With GPUs: where least is
/// lost, then the fewest free ones. `need` and the GPU of a worker say which nodes are not looked at.
fn best_node(
    desk: &mut Desk<'_, '_>,
    draft: &Draft<'_>,
    profile: ProfileId,
    fits: &dyn Fn(&Desk<'_, '_>, &Berth) -> bool,
    (need, share): (Amount, Option<u32>),
) -> Option<NodeId> {
    let usable = |berth: &&Berth| desk.allows(profile, berth.id) && fits(desk, berth);
    let mut ranked = draft.fleet.index().with_spare(need, share).filter_map(|node| draft.get(node)).filter(usable);
    if draft.typical.is_empty() {
        return ranked.next().map(|berth| berth.id);
    }
    let ranked: Vec<&Berth> = ranked.take(WEIGHED_MAX).collect();
    let weighed = ranked
        .into_iter()
        .enumerate()
        .map(|(rank, berth)| ((berth.shape.is_some(), loss(desk, draft, berth, need), rank), berth.id));
    weighed.min_by_key(|(rank, _)| *rank).map(|(_, node)| node)
}

/// Thousandths of GPUs that a node loses with `need`: free ones that become useless for the jobs that usually come, and what
/// its gangs would no longer gain by it.
fn loss(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, berth: &Berth, need: Amount) -> i64 {
    let strands = draft.typical.strands_amount(desk, berth, need);
    let mut after = berth.clone();
    after.reserve(need);
    let lost = value(desk, berth).zip(value(desk, &after)).map_or(0.0, |(before, after)| before - after);
    strands + (lost * 1e3).round_ties_even() as i64
}

/// Whether the bases of all gangs of a node still fit when `need` is taken.
fn leaves_bases(desk: &Desk<'_, '_>, berth: &Berth, need: Amount) -> bool {
    let left = berth.capacity.cpu.checked_sub(need.cpu).zip(berth.capacity.memory.checked_sub(need.memory));
    let Some((cpu, memory)) = left else { return false };
    let Some(shape) = berth.shape else { return true };
    let lattice = desk.shapes.get(shape).lattice;
    let base = berth.base_units();
    lattice.cpu.units_within(cpu) >= base.0 && lattice.memory.units_within(memory) >= base.1
}

fn fits(desk: &Desk<'_, '_>, berth: &Berth, crew: &Crew, workers: u32) -> bool {
    let gpus = if crew.gpu_milli >= 1000 {
        berth.gpus_free >= workers.saturating_mul(crew.gpu_milli / 1000)
    } else {
        crew.gpu_milli == 0 || shares(berth, crew.gpu_milli) >= workers
    };
    gpus && leaves_bases(desk, berth, amount(crew, workers))
}

/// How many parts of that size are free. One row of a plan shares one device, so a node holds one worker more only
/// where a device does.
fn shares(berth: &Berth, gpu_milli: u32) -> u32 {
    let most = berth.shares_free.iter().map(|free| free / gpu_milli).max().unwrap_or(0);
    if berth.gpus_free > 0 { most.max(1000 / gpu_milli) } else { most }
}

fn take(berth: &mut Berth, crew: &Crew, workers: u32) {
    if crew.gpu_milli >= 1000 {
        berth.gpus_free = berth.gpus_free.saturating_sub(workers * (crew.gpu_milli / 1000));
    } else if crew.gpu_milli > 0 {
        berth.take_share(crew.gpu_milli * workers);
    }
}

fn amount(crew: &Crew, workers: u32) -> Amount {
    Amount { cpu: crew.cpu_milli.saturating_mul(workers), memory: crew.memory_mib.saturating_mul(workers) }
}

/// GPU of the worker that needs most of one, thousandths; none without GPUs.
fn share(crews: &[Crew]) -> Option<u32> {
    crews.iter().map(|crew| crew.gpu_milli).max().filter(|gpu_milli| *gpu_milli > 0)
}

fn total(crews: &[Crew]) -> Amount {
    let add = |sum: Amount, more: Amount| Amount {
        cpu: sum.cpu.saturating_add(more.cpu),
        memory: sum.memory.saturating_add(more.memory),
    };
    crews.iter().map(|crew| amount(crew, crew.workers)).fold(Amount::default(), add)
}

fn row(crew: &Crew, node: NodeId, workers: u32) -> Allocation {
    let all = amount(crew, workers);
    Allocation {
        group: crew.group,
        node,
        workers,
        cpu_milli: all.cpu,
        memory_mib: all.memory,
        gpu_milli: crew.gpu_milli.saturating_mul(workers),
        device_mask: 0,
    }
}
