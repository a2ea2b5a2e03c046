//! The names of one process, as far as its segments were read.

use crate::format::Malformed;
use std::collections::HashMap;
use std::sync::Arc;

/// The mangled name of a kernel, or any other text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// As it was recorded: any bytes.
    pub bytes: Arc<[u8]>,
    /// Of an NVTX range, say: nothing to demangle.
    pub is_text: bool,
}

/// Which id is which name. Several ids may have one name; [`Names::index`] is the same for them.
#[derive(Debug, Default)]
pub struct Names {
    by_id: HashMap<u32, u32>,
    indexes: HashMap<Name, u32>,
    names: Vec<Name>,
}

impl Names {
    /// A small number for the name of `id`, the same for all ids of that name.
    #[inline]
    pub fn index(&self, id: u32) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub fn get(&self, id: u32) -> Option<&Name> {
        self.index(id).map(|index| self.name(index))
    }

    /// The name of an index.
    ///
    /// # Panics
    /// If [`Names::index`] did not give it.
    pub fn name(&self, index: u32) -> &Name {
        &self.names[index as usize]
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The payload of a block of names.
    pub(super) fn learn(&mut self, mut payload: &[u8]) -> Result<(), Malformed> {
        while !payload.is_empty() {
            let cut = || Malformed::Content("a name is cut off".to_owned());
            let (head, rest) = payload.split_first_chunk::<9>().ok_or_else(cut)?;
            let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let (id, is_text, length) = (number(0), head[4] != 1, number(5) as usize);
            let (bytes, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
            payload = rest;
            if self.get(id).is_some_and(|known| *known.bytes == *bytes && known.is_text == is_text) {
                continue;
            }
            let name = Name { bytes: bytes.into(), is_text };
            let index = *self.indexes.entry(name.clone()).or_insert_with(|| {
                self.names.push(name);
                self.names.len() as u32 - 1
            });
            self.by_id.insert(id, index);
        }
        Ok(())
    }
}
