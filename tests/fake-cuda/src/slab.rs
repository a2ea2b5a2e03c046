//! Handles to values: an index and a generation, so that a handle of something unloaded is refused, not followed.

const INDEX_BITS: u32 = 24;

/// Values by handle. Handles are never zero and carry the slab's tag in their top bits.
pub struct Slab<T> {
    tag: usize,
    entries: Vec<Entry<T>>,
    free: Vec<usize>,
}

struct Entry<T> {
    generation: u16,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub const fn new(tag: u8) -> Self {
        Self { tag: (tag as usize) << 48, entries: Vec::new(), free: Vec::new() }
    }

    pub fn insert(&mut self, value: T) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry { generation: 0, value: None });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[index];
        entry.generation = entry.generation.wrapping_add(1);
        entry.value = Some(value);
        self.tag | (entry.generation as usize) << INDEX_BITS | index
    }

    pub fn get(&self, handle: usize) -> Option<&T> {
        self.entries.get(self.index(handle)?)?.value.as_ref()
    }

    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        let index = self.index(handle)?;
        self.entries.get_mut(index)?.value.as_mut()
    }

    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let index = self.index(handle)?;
        self.free.push(index);
        self.entries[index].value.take()
    }

    /// Every handle and its value.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let handle = |index: usize, entry: &Entry<T>| self.tag | (entry.generation as usize) << INDEX_BITS | index;
        let entries = self.entries.iter().enumerate();
        entries.filter_map(move |(index, entry)| Some((handle(index, entry), entry.value.as_ref()?)))
    }

    fn index(&self, handle: usize) -> Option<usize> {
        let index = handle & ((1 << INDEX_BITS) - 1);
        let entry = self.entries.get(index)?;
        let expected = self.tag | (entry.generation as usize) << INDEX_BITS | index;
        (handle == expected && entry.value.is_some()).then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_handle_is_refused() {
        let mut slab = Slab::new(3);
        let old = slab.insert("old");
        assert_eq!(slab.remove(old), Some("old"));
        let new = slab.insert("new");
        assert_eq!(slab.get(old), None);
        assert_eq!(slab.remove(old), None);
        assert_eq!(slab.get(new), Some(&"new"));
    }
}
