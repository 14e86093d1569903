//! Synergy-Tune's placement: the whole cluster anew, job by job, in the order given.

use crate::amounts::Amounts;

/// A server as this round finds it: empty of jobs that this policy places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    pub(crate) gpus: u32,
    pub(crate) free: Amounts,
}

/// What a job asks of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) workers: u32,
    pub(crate) gpus_per_worker: u32,
    /// Totals at its best speed.
    pub(crate) full: Amounts,
    /// Totals of its proportional share.
    pub(crate) share: Amounts,
    /// Which set of servers it may use: index into the sets given to [`allocate`].
    pub(crate) servers: usize,
}

impl Request {
    /// What it is put back to: its share, or its own demand where that exceeds the share in nothing.
    fn reduced(&self) -> Amounts {
        if self.full.exceeds(&self.share) { self.share } else { self.full }
    }

    fn gpus(&self) -> u32 {
        self.workers * self.gpus_per_worker
    }
}

/// Workers on one server and what they hold there in total.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) server: usize,
    pub(crate) workers: u32,
    pub(crate) held: Amounts,
}

/// Where a job runs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grant {
    pub(crate) parts: Vec<Part>,
    /// It was put to its share, at placing or as a victim: the reference takes its speed for that of the share.
    pub(crate) reduced: bool,
}

/// How one-GPU jobs choose among servers that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The first in id order, as in Synergy's released runs. Jobs of more GPUs always take the best fit.
    #[default]
    FirstFit,
    /// The one with the fewest free GPUs.
    BestFit,
}

/// Places `requests` in order. `sets[k][server]` says whether requests of set `k` may use a server. `None` = waits.
pub(crate) fn allocate(
    servers: Vec<Server>,
    sets: &[Vec<bool>],
    requests: &[Request],
    placement: Placement,
) -> Vec<Option<Grant>> {
    let on = vec![Vec::new(); servers.len()];
    let mut round = Round { servers, sets, requests, placement, grants: vec![None; requests.len()], on };
    for job in 0..requests.len() {
        round.place(job);
    }
    round.grants
}

struct Round<'a> {
    servers: Vec<Server>,
    sets: &'a [Vec<bool>],
    requests: &'a [Request],
    placement: Placement,
    grants: Vec<Option<Grant>>,
    /// Jobs by server, in placing order.
    on: Vec<Vec<usize>>,
}

impl Round<'_> {
    fn place(&mut self, job: usize) {
        let request = &self.requests[job];
        if let Some(parts) = self.fit(request, &request.full) {
            return self.grant(job, parts, false);
        }
        let (demand, reduced) = (request.reduced(), request.full.exceeds(&request.share));
        if let Some(parts) = self.fit(request, &demand) {
            return self.grant(job, parts, reduced);
        }
        let Some(chosen) = self.by_gpus_alone(request) else { return };
        for &(server, workers) in &chosen {
            self.make_room(server, &demand.portion(workers, request.workers));
        }
        let parts = self.fit(request, &demand).or_else(|| self.on_chosen(request, &demand, &chosen));
        if let Some(parts) = parts {
            self.grant(job, parts, reduced);
        }
    }

    fn grant(&mut self, job: usize, parts: Vec<Part>, reduced: bool) {
        for part in &parts {
            self.servers[part.server].gpus -= part.workers * self.requests[job].gpus_per_worker;
            self.servers[part.server].free.take(&part.held);
            self.on[part.server].push(job);
        }
        self.grants[job] = Some(Grant { parts, reduced });
    }

    fn allowed(&self, request: &Request) -> impl Iterator<Item = usize> + '_ {
        let set = self.sets.get(request.servers);
        (0..self.servers.len()).filter(move |&server| set.is_some_and(|set| set[server]))
    }

    /// Parts that hold `demand`: one server if any fits, else worker by worker on the fullest servers that fit one.
    fn fit(&self, request: &Request, demand: &Amounts) -> Option<Vec<Part>> {
        let fits =
            |server: &usize| self.servers[*server].gpus >= request.gpus() && self.servers[*server].free.covers(demand);
        let first = request.gpus() == 1 && self.placement == Placement::FirstFit;
        let mut candidates = self.allowed(request).filter(fits);
        let whole = if first {
            candidates.next()
        } else {
            candidates.min_by_key(|&server| (self.servers[server].gpus, server))
        };
        match whole {
            Some(server) => Some(vec![Part { server, workers: request.workers, held: *demand }]),
            None if request.workers > 1 => self.fit_split(request, demand),
            None => None,
        }
    }

    fn fit_split(&self, request: &Request, demand: &Amounts) -> Option<Vec<Part>> {
        let one = demand.portion(1, request.workers);
        let mut left = self.servers.clone();
        let mut workers_on = vec![0u32; left.len()];
        for _ in 0..request.workers {
            let fits =
                |server: &usize| left[*server].gpus >= request.gpus_per_worker && left[*server].free.covers(&one);
            let server = self.allowed(request).filter(fits).min_by_key(|&server| (left[server].gpus, server))?;
            left[server].gpus -= request.gpus_per_worker;
            left[server].free.take(&one);
            workers_on[server] += 1;
        }
        let part = |(server, &workers): (usize, &u32)| Part { server, workers, held: one.times(workers) };
        Some(workers_on.iter().enumerate().filter(|(_, workers)| **workers > 0).map(part).collect())
    }

    /// Servers and workers on them when only GPUs count: one server if any has enough, else the fullest first.
    fn by_gpus_alone(&self, request: &Request) -> Option<Vec<(usize, u32)>> {
        let mut order: Vec<usize> = self.allowed(request).filter(|&server| self.servers[server].gpus > 0).collect();
        order.sort_by_key(|&server| (self.servers[server].gpus, server));
        if let Some(&server) = order.iter().find(|&&server| self.servers[server].gpus >= request.gpus()) {
            return Some(vec![(server, request.workers)]);
        }
        let mut left = request.workers;
        let mut chosen = Vec::new();
        for server in order {
            let workers = left.min(self.servers[server].gpus / request.gpus_per_worker.max(1));
            if workers > 0 {
                chosen.push((server, workers));
                left -= workers;
            }
        }
        (left == 0).then_some(chosen)
    }

    /// Puts jobs of `server` back to their share, the one with most CPU first, until `need` is free there.
    fn make_room(&mut self, server: usize, need: &Amounts) {
        let mut victims = self.on[server].clone();
        victims.sort_by_key(|&job| {
            let (parts, per_gpu) = self.held_per_gpu(job);
            (parts, std::cmp::Reverse(per_gpu))
        });
        for job in victims {
            if self.servers[server].free.covers(need) {
                return;
            }
            self.reduce(job);
        }
    }

    /// Servers spanned, and CPU and memory per GPU (in thousandths, to compare exactly enough).
    fn held_per_gpu(&self, job: usize) -> (usize, (u64, u64)) {
        let parts = self.grants[job].as_ref().map_or(&[][..], |grant| &grant.parts);
        let gpus = u64::from(self.requests[job].gpus()).max(1);
        let sum = |amount: fn(&Amounts) -> u64| parts.iter().map(|part| amount(&part.held)).sum::<u64>() * 1000 / gpus;
        (parts.len(), (sum(|held| held.cpu_milli), sum(|held| held.memory_mib)))
    }

    fn reduce(&mut self, job: usize) {
        let request = &self.requests[job];
        let target = request.reduced();
        let Some(grant) = self.grants[job].as_mut() else { return };
        for part in &mut grant.parts {
            let held = target.portion(part.workers, request.workers);
            self.servers[part.server].free.give(&part.held);
            self.servers[part.server].free.take(&held);
            part.held = held;
        }
        grant.reduced = true;
    }

    fn on_chosen(&self, request: &Request, demand: &Amounts, chosen: &[(usize, u32)]) -> Option<Vec<Part>> {
        let part = |&(server, workers): &(usize, u32)| Part {
            server,
            workers,
            held: demand.portion(workers, request.workers),
        };
        let parts: Vec<Part> = chosen.iter().map(part).collect();
        parts.iter().all(|part| self.servers[part.server].free.covers(&part.held)).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: u64 = 1000;

    fn amounts(cores: u64, gb: f64) -> Amounts {
        Amounts { cpu_milli: cores * CORE, memory_mib: (gb * 1024.0) as u64, storage_milli: 0 }
    }

    fn servers(count: usize) -> Vec<Server> {
        vec![Server { gpus: 8, free: amounts(24, 500.0) }; count]
    }

    fn request(gpus: u32, cores: u64, gb: f64) -> Request {
        let share = amounts(3 * u64::from(gpus), 62.5 * f64::from(gpus));
        Request { workers: gpus, gpus_per_worker: 1, full: amounts(cores, gb), share, servers: 0 }
    }

    /// Each job as (server, cores) parts and whether it was reduced.
    fn check(count: usize, requests: &[Request], expected: &[(&[(usize, u64)], bool)]) {
        let found = allocate(servers(count), &[vec![true; count]], requests, Placement::FirstFit);
        assert_eq!(found.len(), expected.len());
        for (job, (found, expected)) in found.iter().zip(expected).enumerate() {
            let parts = found.as_ref().map_or(Vec::new(), |grant| {
                grant.parts.iter().map(|part| (part.server, part.held.cpu_milli / CORE)).collect()
            });
            let reduced = found.as_ref().is_some_and(|grant| grant.reduced);
            assert_eq!((&parts[..], reduced), *expected, "job {job}");
        }
    }

    #[test]
    fn the_four_gangs_of_the_paper_end_at_their_shares() {
        let gangs = [request(4, 24, 250.0), request(4, 24, 500.0), request(4, 4, 80.0), request(4, 4, 80.0)];
        check(2, &gangs, &[(&[(0, 12)], true), (&[(1, 12)], true), (&[(0, 4)], false), (&[(1, 4)], false)]);
    }

    #[test]
    fn a_full_demand_takes_the_first_server_where_it_fits() {
        let jobs = [request(1, 12, 125.0), request(1, 12, 125.0), request(1, 12, 125.0), request(1, 1, 20.0)];
        check(2, &jobs, &[(&[(0, 12)], false), (&[(0, 12)], false), (&[(1, 12)], false), (&[(1, 1)], false)]);
    }

    #[test]
    fn a_job_that_does_not_fit_in_full_takes_its_share_elsewhere() {
        let jobs = [request(1, 12, 125.0), request(1, 9, 62.5), request(1, 9, 62.5)];
        check(1, &jobs, &[(&[(0, 12)], false), (&[(0, 9)], false), (&[(0, 3)], true)]);
    }

    #[test]
    fn victims_with_most_cpu_are_put_back_until_the_gap_is_covered() {
        let jobs = [request(1, 12, 125.0), request(1, 9, 62.5), request(1, 3, 62.5), request(1, 3, 62.5)];
        check(1, &jobs, &[(&[(0, 3)], true), (&[(0, 9)], false), (&[(0, 3)], false), (&[(0, 3)], false)]);
    }

    #[test]
    fn without_gpus_nothing_is_taken_from_anybody() {
        let mut jobs = vec![request(4, 12, 250.0), request(3, 9, 187.5), request(2, 6, 125.0)];
        check(1, &jobs, &[(&[(0, 12)], false), (&[(0, 9)], false), (&[], false)]);
        jobs[0].full = amounts(15, 250.0);
        check(1, &jobs, &[(&[(0, 15)], false), (&[(0, 9)], false), (&[], false)]);
    }

    #[test]
    fn a_gang_without_a_server_of_its_own_is_split_over_the_fullest() {
        let jobs = [request(5, 5, 100.0), request(6, 6, 100.0), request(4, 12, 250.0)];
        check(2, &jobs, &[(&[(0, 5)], false), (&[(1, 6)], false), (&[(0, 6), (1, 6)], false)]);
    }

    #[test]
    fn best_fit_prefers_the_fullest_server_for_one_gpu_too() {
        let jobs = [request(2, 2, 40.0), request(8, 8, 160.0), request(3, 3, 60.0), request(1, 1, 20.0)];
        let found = allocate(servers(3), &[vec![true; 3]], &jobs, Placement::BestFit);
        let server = |job: usize| found[job].as_ref().map(|grant| grant.parts[0].server);
        assert_eq!([server(0), server(1), server(2), server(3)], [Some(0), Some(1), Some(0), Some(0)]);
    }

    #[test]
    fn a_job_uses_only_servers_of_its_set() {
        let jobs = [Request { servers: 1, ..request(1, 3, 62.5) }, Request { servers: 2, ..request(1, 3, 62.5) }];
        let sets = [vec![true; 2], vec![false, true], vec![false; 2]];
        let found = allocate(servers(2), &sets, &jobs, Placement::FirstFit);
        assert_eq!(found[0].as_ref().map(|grant| grant.parts[0].server), Some(1));
        assert_eq!(found[1], None);
    }
}
