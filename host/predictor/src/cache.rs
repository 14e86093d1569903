//! Surfaces computed before: by grid, then by kind. Only speed depends on what is in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use coretuner_core::model::KindId;

use crate::surface::{Grid, Surface};

/// Grids with their surfaces; when full, the grid that was not asked for longest goes first.
#[derive(Debug)]
pub(crate) struct Cache {
    grids: BTreeMap<Grid, Slot>,
    /// Most points kept.
    limit: usize,
    clock: u64,
}

#[derive(Debug, Default)]
struct Slot {
    used: u64,
    surfaces: BTreeMap<KindId, (u32, Arc<Surface>)>,
}

impl Cache {
    /// An empty cache that keeps at most `limit` entries.
    pub fn new(limit: usize) -> Self {
        Self { grids: BTreeMap::new(), limit, clock: 0 }
    }

    /// The surface of `kind`, if it was computed with the same version of its belief.
    pub fn get(&mut self, grid: &Grid, kind: KindId, version: u32) -> Option<Arc<Surface>> {
        self.clock += 1;
        let slot = self.grids.get_mut(grid)?;
        slot.used = self.clock;
        slot.surfaces.get(&kind).filter(|(v, _)| *v == version).map(|(_, surface)| Arc::clone(surface))
    }

    /// Keeps a surface of one kind, in the version it was made with.
    pub fn put(&mut self, grid: &Grid, kind: KindId, version: u32, surface: Arc<Surface>) {
        self.clock += 1;
        if !self.grids.contains_key(grid) {
            self.grids.insert(grid.clone(), Slot::default());
        }
        if let Some(slot) = self.grids.get_mut(grid) {
            slot.used = self.clock;
            slot.surfaces.insert(kind, (version, surface));
        }
        while self.points() > self.limit {
            let oldest = self.grids.iter().min_by_key(|(_, slot)| slot.used).map(|(grid, _)| grid.clone());
            match oldest {
                Some(grid) => self.grids.remove(&grid),
                None => break,
            };
        }
    }

    fn points(&self) -> usize {
        self.grids.iter().map(|(grid, slot)| grid.points() * slot.surfaces.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(cores: u32) -> Grid {
        Grid { gpu_kind: "V100".to_owned(), gpus: vec![(1, 1)], cpu_milli: vec![cores], memory_mib: vec![1, 2] }
    }

    #[test]
    fn answers_what_it_holds_at_that_version() {
        let mut cache = Cache::new(100);
        let surface = Arc::new(Surface { mean: vec![1.0, 2.0], ..Surface::default() });
        cache.put(&grid(1), KindId(0), 7, Arc::clone(&surface));
        let mut check = |cores, kind, version, hit: bool| {
            assert_eq!(cache.get(&grid(cores), KindId(kind), version).is_some(), hit);
        };
        check(1, 0, 7, true);
        check(1, 0, 8, false);
        check(1, 1, 7, false);
        check(2, 0, 7, false);
    }

    #[test]
    fn drops_the_grid_not_asked_for_longest() {
        let mut cache = Cache::new(4);
        let put = |cache: &mut Cache, cores| cache.put(&grid(cores), KindId(0), 0, Arc::new(Surface::default()));
        put(&mut cache, 1);
        put(&mut cache, 2);
        assert!(cache.get(&grid(1), KindId(0), 0).is_some());
        put(&mut cache, 3);
        let held = [1, 2, 3].map(|cores| cache.get(&grid(cores), KindId(0), 0).is_some());
        assert_eq!(held, [true, false, true]);
    }
}
