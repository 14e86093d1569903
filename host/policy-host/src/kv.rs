//! Small state that outlives instances: one namespace per policy name, writes staged until the cycle is accepted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::Limits;

type Namespace = BTreeMap<String, Vec<u8>>;

/// Key-value state of every policy name on this host. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct KvStore {
    names: Arc<Mutex<BTreeMap<String, Namespace>>>,
}

impl KvStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Committed entries of one policy name, in key order.
    pub fn entries(&self, policy: &str) -> Vec<(String, Vec<u8>)> {
        let names = self.lock();
        names.get(policy).into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Namespace>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a write was refused; names are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KvRefusal {
    TooLarge,
    TooManyKeys,
}

/// What one instance sees: committed state under its own staged writes.
pub(crate) struct KvSession {
    store: KvStore,
    policy: String,
    /// `None` = deleted.
    staged: BTreeMap<String, Option<Vec<u8>>>,
    /// Keys and bytes of the view, kept up to date so that a flood of writes costs the same each.
    keys: u64,
    bytes: u64,
}

impl KvSession {
    pub(crate) fn new(store: KvStore, policy: String) -> Self {
        let mut session = Self { store, policy, staged: BTreeMap::new(), keys: 0, bytes: 0 };
        session.recount();
        session
    }

    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        match self.staged.get(key) {
            Some(value) => value.clone(),
            None => self.store.lock().get(&self.policy).and_then(|space| space.get(key)).cloned(),
        }
    }

    pub(crate) fn set(&mut self, limits: &Limits, key: String, value: Vec<u8>) -> Result<(), KvRefusal> {
        if key.len() as u64 > limits.kv_key_bytes || value.len() as u64 > limits.kv_value_bytes {
            return Err(KvRefusal::TooLarge);
        }
        let before = self.size(&key);
        let keys = self.keys + u64::from(before.is_none());
        let bytes = self.bytes - before.unwrap_or(0) + (key.len() + value.len()) as u64;
        if keys > limits.kv_keys {
            return Err(KvRefusal::TooManyKeys);
        }
        if bytes > limits.kv_bytes {
            return Err(KvRefusal::TooLarge);
        }
        (self.keys, self.bytes) = (keys, bytes);
        self.staged.insert(key, Some(value));
        Ok(())
    }

    pub(crate) fn delete(&mut self, key: String) {
        if let Some(size) = self.size(&key) {
            self.keys -= 1;
            self.bytes -= size;
            self.staged.insert(key, None);
        }
    }

    /// Keys that begin with `prefix`, ascending.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let from = || prefix.to_owned()..;
        let mut view: BTreeMap<String, bool> = BTreeMap::new();
        if let Some(space) = self.store.lock().get(&self.policy) {
            view.extend(
                space.range(from()).take_while(|(key, _)| key.starts_with(prefix)).map(|(key, _)| (key.clone(), true)),
            );
        }
        let staged = self.staged.range(from()).take_while(|(key, _)| key.starts_with(prefix));
        view.extend(staged.map(|(key, value)| (key.clone(), value.is_some())));
        view.into_iter().filter_map(|(key, there)| there.then_some(key)).collect()
    }

    /// The cycle was accepted: staged writes take effect.
    pub(crate) fn commit(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        let mut names = self.store.lock();
        let space = names.entry(self.policy.clone()).or_default();
        for (key, value) in std::mem::take(&mut self.staged) {
            match value {
                Some(value) => drop(space.insert(key, value)),
                None => drop(space.remove(&key)),
            }
        }
    }

    /// The cycle was not accepted.
    pub(crate) fn discard(&mut self) {
        if !self.staged.is_empty() {
            self.staged.clear();
            self.recount();
        }
    }

    /// Bytes of a key and its value in the view.
    fn size(&self, key: &str) -> Option<u64> {
        let value = match self.staged.get(key) {
            Some(value) => value.as_ref().map(Vec::len),
            None => self.store.lock().get(&self.policy).and_then(|space| space.get(key)).map(Vec::len),
        };
        value.map(|bytes| (key.len() + bytes) as u64)
    }

    fn recount(&mut self) {
        let names = self.store.lock();
        let sizes = names.get(&self.policy).into_iter().flatten().map(|(key, value)| (key.len() + value.len()) as u64);
        (self.keys, self.bytes) = sizes.fold((0, 0), |(keys, bytes), size| (keys + 1, bytes + size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(store: &KvStore) -> KvSession {
        KvSession::new(store.clone(), "p".into())
    }

    #[test]
    fn writes_show_at_once_and_count_when_committed() {
        let (store, limits) = (KvStore::new(), Limits::default());
        let mut first = session(&store);
        first.set(&limits, "a/1".into(), vec![1]).unwrap();
        first.set(&limits, "a/2".into(), vec![2]).unwrap();
        assert_eq!(first.keys("a/"), ["a/1", "a/2"]);
        assert_eq!(session(&store).get("a/1"), None);
        first.commit();
        assert_eq!(session(&store).get("a/1"), Some(vec![1]));

        first.delete("a/1".into());
        assert_eq!((first.get("a/1"), first.keys("")), (None, vec!["a/2".to_owned()]));
        first.discard();
        assert_eq!(first.get("a/1"), Some(vec![1]));
        assert_eq!((first.keys, first.bytes), (2, 8));
    }

    #[test]
    fn limits_hold_over_committed_and_staged() {
        let limits = Limits { kv_keys: 2, kv_bytes: 10, kv_value_bytes: 6, kv_key_bytes: 3, ..Limits::default() };
        let store = KvStore::new();
        let mut kv = session(&store);
        kv.set(&limits, "a".into(), vec![0; 6]).unwrap();
        kv.commit();
        let mut check = |key: &str, bytes: usize, expected: Result<(), KvRefusal>| {
            assert_eq!(kv.set(&limits, key.into(), vec![0; bytes]), expected, "{key} {bytes}");
        };
        check("b", 7, Err(KvRefusal::TooLarge));
        check("long", 0, Err(KvRefusal::TooLarge));
        check("b", 3, Err(KvRefusal::TooLarge));
        check("b", 2, Ok(()));
        check("c", 0, Err(KvRefusal::TooManyKeys));
        check("a", 1, Ok(()));
        check("b", 6, Ok(()));
    }
}
