//! The cubins of a recording that lies on the disk, and which of them has a kernel.
//!
//! Reads `index.json`, and parses what lies in `cubins/` without being in it: a recording that was killed may not have
//! come to write its index. Of one bad file, that file's entry says so; all others are listed. Files and index are
//! untrusted, and one cubin at a time is in memory.

use crate::crc::crc32;
use crate::symbols::Cubin;
use crate::symbols::cubin::Kernel;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Largest index that is read.
const MAX_INDEX_BYTES: u64 = 1 << 30;
/// Largest cubin that is read, as of those that are recorded.
const MAX_CUBIN_BYTES: u64 = 1 << 30;
/// Files that are looked at beside those in the index; a recording has no more.
const MAX_FILES: usize = 64 * 1024;

/// All cubins of a recording, those of the index first, in its order.
#[derive(Debug, Default)]
pub struct CubinList {
    cubins: Vec<ListedCubin>,
    by_kernel: HashMap<String, Vec<usize>>,
    index_error: String,
}

/// One distinct cubin. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListedCubin {
    /// In the folder `cubins`; absent where it was not kept.
    pub file: Option<String>,
    pub size_bytes: u64,
    /// Of all bytes.
    pub crc32: Option<u32>,
    /// What `cuptiGetCubinCrc` gives; several cubins may share one.
    pub cupti_crc: Option<u64>,
    /// Why `cupti_crc` is absent.
    pub cupti_crc_reason: String,
    pub architecture: String,
    pub line_info: Option<bool>,
    pub function_count: u64,
    /// At most 65,536.
    pub kernels: Vec<KernelFigures>,
    /// Times that it was loaded, by all processes together.
    pub loads: Option<u64>,
    /// CLOCK_MONOTONIC of the first load, nanoseconds.
    pub first_load_ns: Option<u64>,
    /// False where the figures come from the file alone.
    pub is_in_index: bool,
    /// Why it could not be read or parsed; empty where it could.
    pub error: String,
}

/// A kernel of a cubin, with what it takes; a figure that the cubin does not give is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelFigures {
    /// Mangled.
    pub name: String,
    pub code_bytes: u64,
    /// A thread's.
    pub registers: Option<u32>,
    /// A block's.
    pub static_shared_bytes: u64,
    /// A thread's frame: its own arrays and spilled registers.
    pub local_bytes: Option<u32>,
    /// A thread's stack with all that the kernel calls.
    pub stack_bytes: Option<u32>,
    /// Of a block, where the kernel sets a bound.
    pub max_threads: Option<u64>,
}

/// Why there is no list at all.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("{path} could not be read: {source}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("{path} is no recording: it has neither cubins/ nor index.json; `gputap record -o DIR` writes one")]
    NoRecording { path: PathBuf },
}

impl CubinList {
    /// Lists the cubins of the recording in `dir`.
    ///
    /// # Errors
    /// `dir` cannot be read, or is no recording.
    pub fn open(dir: &Path) -> Result<CubinList, ListError> {
        let folder_error = |source| ListError::Folder { path: dir.to_owned(), source };
        if !fs::metadata(dir).map_err(folder_error)?.is_dir() {
            return Err(folder_error(io::ErrorKind::NotADirectory.into()));
        }
        let (folder, index) = (dir.join("cubins"), dir.join("index.json"));
        if !folder.is_dir() && !index.exists() {
            return Err(ListError::NoRecording { path: dir.to_owned() });
        }
        let mut list = CubinList::default();
        match read_index(&index) {
            Ok(entries) => list.cubins = merged(entries),
            Err(error) => list.index_error = format!("{}: {error}", index.display()),
        }
        list.cubins.iter_mut().for_each(|cubin| complete(cubin, &folder));
        list.add_unlisted(&folder);
        list.link_kernels();
        Ok(list)
    }

    pub fn cubins(&self) -> &[ListedCubin] {
        &self.cubins
    }

    /// Places in [`CubinList::cubins`] of those that have this kernel (its mangled name; bytes that are not UTF-8 as
    /// `String::from_utf8_lossy` gives them). Several may: one program has a kernel for several architectures.
    pub fn of_kernel(&self, mangled: &str) -> &[usize] {
        self.by_kernel.get(mangled).map_or(&[], Vec::as_slice)
    }

    /// Why `index.json` gave nothing; empty where it did.
    pub fn index_error(&self) -> &str {
        &self.index_error
    }

    fn add_unlisted(&mut self, folder: &Path) {
        let known: HashSet<&str> = self.cubins.iter().filter_map(|cubin| cubin.file.as_deref()).collect();
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_new = |name: &String| name.ends_with(".cubin") && !known.contains(name.as_str());
        let mut names: Vec<String> = names.filter(is_new).take(MAX_FILES).collect();
        names.sort();
        self.cubins.extend(names.into_iter().map(|name| from_file(folder, name)));
    }

    fn link_kernels(&mut self) {
        for (number, cubin) in self.cubins.iter().enumerate() {
            for kernel in &cubin.kernels {
                let cubins = self.by_kernel.entry(kernel.name.clone()).or_default();
                if cubins.last() != Some(&number) {
                    cubins.push(number);
                }
            }
        }
    }
}

impl From<&Kernel> for KernelFigures {
    fn from(kernel: &Kernel) -> KernelFigures {
        KernelFigures {
            name: String::from_utf8_lossy(&kernel.name).into_owned(),
            code_bytes: kernel.code_bytes,
            registers: kernel.registers,
            static_shared_bytes: kernel.static_shared_bytes,
            local_bytes: kernel.local_bytes,
            stack_bytes: kernel.stack_bytes,
            max_threads: kernel.max_threads,
        }
    }
}

/// What is read of the index; all else in it is for others.
#[derive(Deserialize)]
struct IndexFile {
    cubins: Vec<IndexedCubin>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IndexedCubin {
    file: Option<String>,
    size_bytes: u64,
    loads: Option<u64>,
    crc32: Option<u32>,
    cupti_crc: Option<u64>,
    cupti_crc_reason: Option<String>,
    architecture: Option<String>,
    line_info: Option<bool>,
    parse_error: Option<String>,
    function_count: u64,
    /// Absent in recordings of earlier versions.
    kernels: Option<Vec<KernelFigures>>,
    #[serde(default)]
    loaded_by: Vec<LoadedBy>,
}

#[derive(Deserialize)]
struct LoadedBy {
    first_load_ns: Option<u64>,
}

fn read_index(path: &Path) -> Result<Vec<IndexedCubin>, String> {
    let bytes = read_file(path, MAX_INDEX_BYTES)?;
    let index: IndexFile = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    Ok(index.cubins)
}

/// One entry a file: two processes that loaded the same cubin share it.
fn merged(entries: Vec<IndexedCubin>) -> Vec<ListedCubin> {
    let mut cubins: Vec<ListedCubin> = Vec::new();
    let mut by_file: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        let known = entry.file.as_ref().and_then(|file| by_file.get(file)).copied();
        match known {
            Some(number) => add_loads(&mut cubins[number], &entry),
            None => {
                if let Some(file) = &entry.file {
                    by_file.insert(file.clone(), cubins.len());
                }
                cubins.push(listed(entry));
            }
        }
    }
    cubins
}

fn add_loads(cubin: &mut ListedCubin, entry: &IndexedCubin) {
    cubin.loads = match (cubin.loads, entry.loads) {
        (Some(loads), Some(more)) => Some(loads.saturating_add(more)),
        (loads, more) => loads.or(more),
    };
    cubin.first_load_ns = cubin.first_load_ns.into_iter().chain(first_load_ns(entry)).min();
    if cubin.cupti_crc.is_none() && entry.cupti_crc.is_some() {
        cubin.cupti_crc = entry.cupti_crc;
        cubin.cupti_crc_reason.clear();
    }
}

fn first_load_ns(entry: &IndexedCubin) -> Option<u64> {
    entry.loaded_by.iter().filter_map(|process| process.first_load_ns).min()
}

fn listed(entry: IndexedCubin) -> ListedCubin {
    let first_load_ns = first_load_ns(&entry);
    ListedCubin {
        file: entry.file,
        size_bytes: entry.size_bytes,
        crc32: entry.crc32,
        cupti_crc: entry.cupti_crc,
        cupti_crc_reason: entry.cupti_crc_reason.unwrap_or_default(),
        architecture: entry.architecture.unwrap_or_default(),
        line_info: entry.line_info,
        function_count: entry.function_count,
        kernels: entry.kernels.unwrap_or_default(),
        loads: entry.loads,
        first_load_ns,
        is_in_index: true,
        error: entry.parse_error.unwrap_or_default(),
    }
}

/// Looks whether the file is there, and takes from it what the index does not say.
fn complete(cubin: &mut ListedCubin, folder: &Path) {
    let Some(file) = &cubin.file else { return };
    if !is_plain_name(file) {
        cubin.error = format!("the index names a file outside of the folder: {file:?}");
        return;
    }
    let path = folder.join(file);
    let trouble = match fs::metadata(&path) {
        Err(error) => Some(format!("{}: {error}", path.display())),
        Ok(meta) if meta.len() != cubin.size_bytes => {
            Some(format!("{}: has {} bytes, the index says {}", path.display(), meta.len(), cubin.size_bytes))
        }
        Ok(_) => None,
    };
    if let Some(trouble) = trouble {
        cubin.error = trouble;
    } else if cubin.kernels.is_empty() && cubin.function_count > 0 {
        // An earlier version's index, or one that had no room for more names.
        take_file(cubin, &path);
    }
}

fn from_file(folder: &Path, name: String) -> ListedCubin {
    let path = folder.join(&name);
    let mut cubin = ListedCubin {
        file: Some(name),
        size_bytes: fs::metadata(&path).map_or(0, |meta| meta.len()),
        cupti_crc_reason: "the recording ended before its index was written".to_owned(),
        ..Default::default()
    };
    take_file(&mut cubin, &path);
    let key = cubin.crc32.map(|crc32| format!("{crc32:08x}-{}", cubin.size_bytes)).unwrap_or_default();
    if cubin.error.is_empty() && !cubin.file.as_ref().is_some_and(|name| name.starts_with(&key)) {
        cubin.error = format!("{}: damaged: its bytes make it {key}.cubin", path.display());
    }
    cubin
}

fn take_file(cubin: &mut ListedCubin, path: &Path) {
    let parsed = read_file(path, MAX_CUBIN_BYTES).and_then(|bytes| {
        cubin.crc32 = Some(crc32(&bytes));
        Cubin::parse(&bytes).map_err(|error| error.to_string())
    });
    match parsed {
        Ok(parsed) => {
            cubin.line_info = Some(parsed.line_info);
            cubin.function_count = parsed.function_count;
            cubin.kernels = parsed.kernels.iter().map(KernelFigures::from).collect();
            cubin.architecture = parsed.architecture;
        }
        Err(error) => cubin.error = format!("{}: {error}", path.display()),
    }
}

/// A whole file; a pipe, which might never end, is not read.
fn read_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("more than {max_bytes} bytes"));
    }
    Ok(bytes)
}

fn is_plain_name(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    matches!((parts.next(), parts.next()), (Some(std::path::Component::Normal(_)), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const LINES: &[u8] = include_bytes!("../../tests/data/two-13.5-sm_90-lineinfo.cubin");
    const PLAIN: &[u8] = include_bytes!("../../tests/data/two-13.5-sm_75.cubin");

    struct Recording(tempfile::TempDir);

    impl Recording {
        fn new() -> Recording {
            let recording = Recording(tempfile::tempdir().expect("a folder"));
            fs::create_dir(recording.0.path().join("cubins")).expect("a folder in it");
            recording
        }

        /// As a recorder keeps it; gives the file's name.
        fn keep(&self, bytes: &[u8]) -> String {
            self.keep_as(bytes, &format!("{:08x}-{}.cubin", crc32(bytes), bytes.len()))
        }

        fn keep_as(&self, bytes: &[u8], name: &str) -> String {
            fs::write(self.0.path().join("cubins").join(name), bytes).expect("room");
            name.to_owned()
        }

        fn index(&self, cubins: &[Value]) {
            let index = json!({"version": 9, "processes": [{"pid": 7}], "cubins": cubins});
            fs::write(self.0.path().join("index.json"), index.to_string()).expect("room");
        }

        fn list(&self) -> CubinList {
            CubinList::open(self.0.path()).expect("a recording")
        }
    }

    #[test]
    fn the_index_comes_first_and_what_it_lacks_is_parsed() {
        let recording = Recording::new();
        let (listed, unlisted) = (recording.keep(LINES), recording.keep(PLAIN));
        let kernel = json!({"name": "k0", "registers": 8, "static_shared_bytes": 16, "of_a_later_version": true});
        let entry = json!({
            "file": listed, "size_bytes": LINES.len(), "loads": 3, "crc32": crc32(LINES), "cupti_crc": 0x1234_5678_9abc_u64,
            "cupti_crc_reason": "", "architecture": "sm_90", "line_info": true, "parse_error": "", "function_count": 1,
            "functions": ["k0"], "kernels": [kernel], "loaded_by": [{"first_load_ns": 99}, {"first_load_ns": 77}], "of_a_later_version": {},
        });
        recording.index(&[entry]);
        let list = recording.list();
        let [indexed, found] = list.cubins() else { panic!("{list:?}") };
        let figures =
            KernelFigures { name: "k0".into(), registers: Some(8), static_shared_bytes: 16, ..Default::default() };
        assert_eq!((indexed.loads, indexed.kernels.as_slice()), (Some(3), &[figures][..]));
        assert_eq!((indexed.first_load_ns, indexed.cupti_crc), (Some(77), Some(0x1234_5678_9abc)));
        assert_eq!((&found.file, found.crc32, found.loads), (&Some(unlisted), Some(crc32(PLAIN)), None));
        assert_eq!((found.architecture.as_str(), found.line_info, found.kernels.len()), ("sm_75", Some(false), 2));
        assert_eq!((indexed.error.as_str(), found.error.as_str(), list.index_error()), ("", "", ""));
        assert_eq!(list.of_kernel("k0"), [0, 1]);
        assert_eq!(list.of_kernel("_Z5scaleIfEvPT_S0_i"), [1]);
        assert_eq!(list.of_kernel("k1"), [0_usize; 0]);
    }

    #[test]
    fn processes_that_loaded_one_cubin_share_its_entry() {
        let recording = Recording::new();
        let file = recording.keep(PLAIN);
        let entry = |loads: u64, first: u64, crc: Option<u64>| {
            json!({"file": file, "size_bytes": PLAIN.len(), "loads": loads, "loaded_by": [{"first_load_ns": first}], "function_count": 2,
                "cupti_crc": crc, "cupti_crc_reason": if crc.is_some() { "" } else { "it hung" }})
        };
        recording.index(&[entry(2, 500, None), entry(5, 300, Some(9)), json!({"file": null, "size_bytes": 4})]);
        let list = recording.list();
        let [shared, not_kept] = list.cubins() else { panic!("{list:?}") };
        assert_eq!((shared.loads, shared.first_load_ns, shared.cupti_crc), (Some(7), Some(300), Some(9)));
        assert_eq!(shared.cupti_crc_reason, "");
        assert_eq!(shared.kernels.len(), 2, "an index without kernels is completed from the file");
        assert_eq!((&not_kept.file, not_kept.size_bytes), (&None, 4));
    }

    #[test]
    fn one_bad_file_costs_its_own_entry_only() {
        let recording = Recording::new();
        recording.keep(b"\0 is no cubin");
        let damaged = recording.keep_as(PLAIN, "00000000-4456.cubin");
        let cut = recording.keep(LINES);
        let pipe = recording.0.path().join("cubins/pipe.cubin");
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        );
        fifo.expect("a pipe");
        let entry = |file: &str, size: usize| json!({"file": file, "size_bytes": size, "function_count": 2});
        recording.index(&[
            entry(&cut, 9),
            entry("gone.cubin", 5),
            entry("../index.json", 5),
            entry(&damaged, PLAIN.len()),
        ]);
        let list = recording.list();
        let errors: Vec<&str> = list.cubins().iter().map(|cubin| cubin.error.as_str()).collect();
        let expected = ["the index says 9", "No such file", "outside of the folder", "", "not a 64-bit", "not a file"];
        assert_eq!(errors.len(), expected.len(), "{errors:?}");
        for (error, expected) in errors.iter().zip(expected) {
            assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{error:?}: {expected:?}");
        }
        // The same file where no index vouches for it.
        recording.index(&[]);
        let error = recording.list().cubins()[0].error.clone();
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn a_broken_index_is_told_and_the_files_are_listed() {
        let recording = Recording::new();
        recording.keep(PLAIN);
        for index in ["", "{\"cubins\": 7}", "[]"] {
            fs::write(recording.0.path().join("index.json"), index).expect("room");
            let list = recording.list();
            assert!(list.index_error().contains("index.json"), "{:?}", list.index_error());
            assert_eq!(list.cubins().len(), 1);
        }
    }

    #[test]
    fn what_is_no_recording_says_so() {
        let empty = tempfile::tempdir().expect("a folder");
        assert!(matches!(CubinList::open(empty.path()), Err(ListError::NoRecording { .. })));
        assert!(matches!(CubinList::open(&empty.path().join("none")), Err(ListError::Folder { .. })));
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(matches!(CubinList::open(file.path()), Err(ListError::Folder { .. })));
    }
}
