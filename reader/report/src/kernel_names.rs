//! The kernels of one process, by small numbers: which id of its events is which.

use gputap_reader::model::{KernelStats, MAX_KERNELS, MAX_NAME_SLOTS};
use gputap_reader::symbols::demangle;
use gputap_recording::Names;
use gputap_ringbuf::event::NO_NAME;
use regex_lite::Regex;
use std::collections::HashMap;
use std::sync::Arc;

/// Kernels without a name.
pub const UNNAMED: usize = 0;
/// Those for which there is no room.
pub const OTHER: usize = 1;
/// Ids below are looked up in a table.
const TABLE_MAX: usize = 1 << 20;
const UNKNOWN: u32 = u32::MAX;

/// What is known of a kernel.
#[derive(Debug)]
pub struct Kernel {
    pub mangled: Arc<[u8]>,
    /// The filter lets it through.
    pub is_wanted: bool,
    pub stats: KernelStats,
}

/// Names are keyed by their bytes: several ids may have one name, and several names one readable form.
#[derive(Debug)]
pub struct Kernels {
    by_id: Vec<u32>,
    by_high_id: HashMap<u32, u32>,
    by_name: HashMap<Arc<[u8]>, u32>,
    ids: usize,
    pub all: Vec<Kernel>,
    filter: Option<Regex>,
}

impl Kernels {
    pub fn new(filter: Option<Regex>) -> Kernels {
        let mut kernels = Kernels {
            by_id: Vec::new(),
            by_high_id: HashMap::new(),
            by_name: HashMap::new(),
            ids: 0,
            all: Vec::new(),
            filter,
        };
        for readable in [crate::sum::UNNAMED, crate::sum::OTHER] {
            let is_wanted = kernels.filter.as_ref().is_none_or(|filter| filter.is_match(readable));
            kernels.all.push(Kernel { mangled: Arc::from(*b""), is_wanted, stats: KernelStats::default() });
        }
        kernels
    }

    /// None for an id that [`Kernels::learn`] has not been told.
    #[inline]
    pub fn number(&self, id: u32) -> Option<usize> {
        let number = match self.by_id.get(id as usize) {
            Some(&number) => number,
            None if id == NO_NAME => return Some(UNNAMED),
            None => self.by_high_id.get(&id).copied().unwrap_or(UNKNOWN),
        };
        (number != UNKNOWN).then_some(number as usize)
    }

    /// What `id` means, from now on.
    pub fn learn(&mut self, id: u32, names: &Names) {
        if self.number(id).is_some() {
            return;
        }
        let number = match names.get(id) {
            _ if self.ids >= MAX_NAME_SLOTS => OTHER as u32,
            None => UNNAMED as u32,
            Some(name) => self.of_name(&name.bytes),
        };
        self.ids += 1;
        if (id as usize) < TABLE_MAX {
            if self.by_id.len() <= id as usize {
                self.by_id.resize(id as usize + 1, UNKNOWN);
            }
            self.by_id[id as usize] = number;
        } else if self.by_high_id.len() < MAX_NAME_SLOTS {
            self.by_high_id.insert(id, number);
        }
    }

    fn of_name(&mut self, mangled: &Arc<[u8]>) -> u32 {
        if let Some(&number) = self.by_name.get(mangled) {
            return number;
        }
        if self.all.len() >= MAX_KERNELS {
            return OTHER as u32;
        }
        let number = self.all.len() as u32;
        let is_wanted = self.filter.as_ref().is_none_or(|filter| filter.is_match(&demangle(mangled)));
        self.all.push(Kernel { mangled: Arc::clone(mangled), is_wanted, stats: KernelStats::default() });
        self.by_name.insert(Arc::clone(mangled), number);
        number
    }
}
