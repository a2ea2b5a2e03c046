//! Which cubin defines a kernel, by the recording's `index.json`.

use crate::sum::Name;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

/// An index with more than this is not read: whoever wrote it was no recorder.
const INDEX_MAX_BYTES: u64 = 1 << 30;

/// Names of kernels by cubin. Empty where the recording has no index.
#[derive(Debug, Default)]
pub struct Cubins {
    by_kernel: HashMap<String, Vec<u32>>,
}

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    cubins: Vec<Cubin>,
}

#[derive(Deserialize)]
struct Cubin {
    crc32: u32,
    #[serde(default)]
    functions: Vec<String>,
}

impl Cubins {
    pub fn open(dir: &Path) -> Cubins {
        let path = dir.join("index.json");
        let is_small = std::fs::metadata(&path).is_ok_and(|meta| meta.len() <= INDEX_MAX_BYTES);
        let bytes = if is_small { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
        let index = serde_json::from_slice(&bytes).unwrap_or(Index { cubins: Vec::new() });
        let mut cubins = Cubins::default();
        for cubin in index.cubins {
            for function in cubin.functions {
                let crcs = cubins.by_kernel.entry(function).or_default();
                if !crcs.contains(&cubin.crc32) {
                    crcs.push(cubin.crc32);
                }
            }
        }
        cubins
    }

    /// The checksums of those that define it; of equal names in several cubins a record does not say which was meant.
    pub fn of_kernel(&self, mangled: &[u8]) -> &[u32] {
        self.by_kernel.get(&*String::from_utf8_lossy(mangled)).map_or(&[], Vec::as_slice)
    }

    /// Of the cubin, or the cubins, that may be meant.
    pub fn label(&self, name: &Name) -> String {
        let crcs = match name {
            Name::Mangled(mangled) => self.of_kernel(mangled),
            Name::Unnamed | Name::Other => &[],
        };
        match crcs {
            [] => "no cubin known".to_owned(),
            crcs => crcs.iter().map(|crc32| format!("cubin {crc32:08x}")).collect::<Vec<_>>().join(" or "),
        }
    }
}
