use std::collections::BTreeMap;

use crate::contract::NONE;

/// The string table of one policy instance: each text is sent once, its index is its place in the order of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    index: BTreeMap<Box<str>, u32>,
    /// Not sent yet.
    new: Vec<String>,
}

impl Strings {
    pub(super) fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.index.get(text) {
            return *id;
        }
        let id = self.index.len() as u32;
        self.index.insert(text.into(), id);
        self.new.push(text.to_owned());
        id
    }

    pub(super) fn optional(&mut self, text: Option<&str>) -> u32 {
        text.map_or(NONE, |text| self.id(text))
    }

    /// What the next delta appends.
    pub(super) fn take_new(&mut self) -> Vec<String> {
        std::mem::take(&mut self.new)
    }
}
