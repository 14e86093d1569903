use std::collections::BTreeMap;

/// Ids that were ever given, as ranges: small when a backend counts upwards, whatever the number of ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsedIds {
    /// First id → last id of a range; ranges neither touch nor overlap.
    ranges: BTreeMap<u32, u32>,
}

impl UsedIds {
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.ranges.range(..=id).next_back().is_some_and(|(_, last)| *last >= id)
    }

    pub(crate) fn insert(&mut self, id: u32) {
        if self.contains(id) {
            return;
        }
        let joins_left = self.ranges.range(..id).next_back().filter(|(_, last)| last.checked_add(1) == Some(id));
        let first = joins_left.map_or(id, |(first, _)| *first);
        let joins_right = id.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, joins_right.unwrap_or(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join() {
        let mut used = UsedIds::default();
        for id in [5, 3, 4, 9, u32::MAX, 0, 5] {
            used.insert(id);
        }
        assert_eq!(used.ranges.into_iter().collect::<Vec<_>>(), [(0, 0), (3, 5), (9, 9), (u32::MAX, u32::MAX)]);
    }

    #[test]
    fn contains_only_what_was_inserted() {
        let mut used = UsedIds::default();
        used.insert(2);
        used.insert(3);
        assert_eq!([1, 2, 3, 4].map(|id| used.contains(id)), [false, true, true, false]);
    }
}
