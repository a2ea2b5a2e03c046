//! Where a libcupti may be.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"];

/// Folders below a toolkit's.
const TOOLKIT_FOLDERS: [&str; 4] =
    ["targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "extras/CUPTI/lib64", "lib64"];
/// Folders below Python's site-packages, where the wheels of CUDA 13 and of 11 and 12 put it.
const WHEEL_FOLDERS: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"];

/// What to try, best first. Bare names go through the loader's own search.
pub fn candidates() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = mapped().into_iter().collect();
    all.extend(NAMES.iter().map(PathBuf::from));
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let folders = toolkits
        .chain(installed_toolkits())
        .flat_map(|t| TOOLKIT_FOLDERS.map(|f| t.join(f)))
        .chain(site_packages().into_iter().flat_map(|s| WHEEL_FOLDERS.map(|f| s.join(f))));
    all.extend(folders.flat_map(|folder| NAMES.map(|n| folder.join(n))).filter(|path| path.exists()));
    all
}

/// The libcupti that this process has mapped.
pub fn mapped() -> Option<PathBuf> {
    mapped_files()
        .into_iter()
        .find(|path| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("libcupti.so")))
}

fn mapped_files() -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let path = |line: &str| line.find('/').map(|at| PathBuf::from(&line[at..]));
    maps.lines().filter_map(path).collect()
}

fn installed_toolkits() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/usr/local") else { return Vec::new() };
    let is_cuda = |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("cuda"));
    let mut found: Vec<_> = entries.flatten().map(|e| e.path()).filter(is_cuda).collect();
    found.sort();
    found.reverse();
    found
}

/// Python's package folders, told by the extension modules that the process has mapped.
fn site_packages() -> BTreeSet<PathBuf> {
    let folder = |path: PathBuf| {
        let is_packages = |p: &&Path| p.ends_with("site-packages") || p.ends_with("dist-packages");
        path.ancestors().find(is_packages).map(Path::to_owned)
    };
    mapped_files().into_iter().filter_map(folder).collect()
}
