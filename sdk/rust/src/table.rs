//! Values by id: dense storage, look-up in constant time, iteration in ascending id.

const PAGE: usize = 1024;
const EMPTY: u32 = u32::MAX;

/// Maps ids that the host gives out in rising order to dense slots. Pages whose ids are all gone are given back, so the
/// memory follows the live ids and not all that ever were.
#[derive(Clone, Debug)]
pub struct Table<T> {
    pages: Vec<Option<Box<Page>>>,
    values: Vec<Option<T>>,
    free: Vec<u32>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Page {
    slots: [u32; PAGE],
    used: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), values: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl<T> Table<T> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Dense index of an id; stays the same while the id lives.
    #[inline]
    pub(crate) fn slot(&self, id: u32) -> Option<usize> {
        let page = self.pages.get(id as usize / PAGE)?.as_ref()?;
        let slot = page.slots[id as usize % PAGE];
        (slot != EMPTY).then_some(slot as usize)
    }

    /// The value at `id`.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&T> {
        self.values.get(self.slot(id)?)?.as_ref()
    }

    /// The value at `id`, to change it.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let slot = self.slot(id)?;
        self.values.get_mut(slot)?.as_mut()
    }

    /// Puts `value` at `id` and returns what was there.
    pub fn insert(&mut self, id: u32, value: T) -> Option<T> {
        if let Some(slot) = self.slot(id) {
            return self.values[slot].replace(value);
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.values[slot as usize] = Some(value);
                slot
            }
            None => {
                self.values.push(Some(value));
                self.values.len() as u32 - 1
            }
        };
        let index = id as usize / PAGE;
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, || None);
        }
        let page = self.pages[index].get_or_insert_with(|| Box::new(Page { slots: [EMPTY; PAGE], used: 0 }));
        page.slots[id as usize % PAGE] = slot;
        page.used += 1;
        self.len += 1;
        None
    }

    /// Takes the value out and keeps its place: [`Table::insert`] must follow.
    pub(crate) fn take(&mut self, id: u32) -> Option<T> {
        let slot = self.slot(id)?;
        self.values.get_mut(slot)?.take()
    }

    /// Takes the value at `id` out.
    pub fn remove(&mut self, id: u32) -> Option<T> {
        let slot = self.slot(id)?;
        let entry = self.pages.get_mut(id as usize / PAGE)?;
        let page = entry.as_mut()?;
        page.slots[id as usize % PAGE] = EMPTY;
        page.used -= 1;
        if page.used == 0 {
            *entry = None;
        }
        self.free.push(slot as u32);
        self.len -= 1;
        self.values[slot].take()
    }

    /// Ascending by id.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        Iter { pages: self.pages.iter(), slots: [].iter(), values: &self.values }
    }
}

/// Values of a table. Not a chain of adapters: policies walk all nodes, and a component pays for each call between them.
struct Iter<'a, T> {
    pages: std::slice::Iter<'a, Option<Box<Page>>>,
    slots: std::slice::Iter<'a, u32>,
    values: &'a [Option<T>],
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            for slot in self.slots.by_ref() {
                // No slot is `EMPTY`, which lies beyond every index.
                if let Some(Some(value)) = self.values.get(*slot as usize) {
                    return Some(value);
                }
            }
            self.slots = self.pages.find_map(Option::as_ref)?.slots.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn keeps_values_by_id_in_id_order() {
        let mut table = Table::default();
        for id in [5000, 3, 70_000, 4] {
            assert_eq!(table.insert(id, id * 2), None);
        }
        assert_eq!(table.insert(4, 9), Some(8));
        assert_eq!(table.remove(3), Some(6));
        assert_eq!(table.remove(3), None);
        assert_eq!(table.get(5000), Some(&10_000));
        assert_eq!(table.get(1), None);
        assert_eq!(table.len(), 3);
        let all: Vec<_> = table.iter().copied().collect();
        assert_eq!(all, [9, 10_000, 140_000]);
    }

    #[test]
    fn reuses_slots_and_gives_pages_back() {
        let mut table = Table::default();
        for id in 0..10_000 {
            table.insert(id, id);
            if id >= 10 {
                table.remove(id - 10);
            }
        }
        assert_eq!(table.values.len(), 11);
        assert_eq!(table.pages.iter().flatten().count(), 1);
    }
}
