//! Where a libcupti of the reader's own may be.
//!
//! Never a path that a tapped process or its segment names: loading is running.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Names that the loader may find by itself.
const SONAMES: [&str; 4] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"];
/// Most candidates: each costs a process where it fails.
pub const MAX_CANDIDATES: usize = 24;

/// A library to try, and how we came to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub path: PathBuf,
    pub origin: &'static str,
}

/// The candidates in the order in which they are tried: `GPUTAP_CUPTI`, the loader's own search, CUDA_HOME and
/// CUDA_PATH, /usr/local/cuda*, the folder of the pip wheels. `env` looks up environment variables. With
/// `GPUTAP_CUPTI` set, it alone is tried.
pub fn candidates(env: &dyn Fn(&str) -> Option<OsString>) -> Vec<Candidate> {
    if let Some(path) = env("GPUTAP_CUPTI").filter(|path| !path.is_empty()) {
        return vec![Candidate { path: path.into(), origin: "GPUTAP_CUPTI" }];
    }
    let mut found = Vec::new();
    found.extend(SONAMES.iter().map(|name| Candidate { path: name.into(), origin: "the loader's search" }));
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        env(variable).into_iter().for_each(|home| in_toolkit(Path::new(&home), "CUDA_HOME or CUDA_PATH", &mut found));
    }
    for toolkit in children(Path::new("/usr/local"), "cuda") {
        in_toolkit(&toolkit, "/usr/local/cuda*", &mut found);
    }
    for packages in site_packages(env) {
        for folder in ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"] {
            in_folder(&packages.join(folder), "a pip wheel", &mut found);
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|candidate| seen.insert(candidate.path.canonicalize().unwrap_or_else(|_| candidate.path.clone())));
    found.truncate(MAX_CANDIDATES);
    found
}

fn in_toolkit(toolkit: &Path, origin: &'static str, found: &mut Vec<Candidate>) {
    for folder in ["extras/CUPTI/lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib64"] {
        in_folder(&toolkit.join(folder), origin, found);
    }
}

fn in_folder(folder: &Path, origin: &'static str, found: &mut Vec<Candidate>) {
    let path = SONAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    found.extend(path.map(|path| Candidate { path, origin }));
}

/// Python's package folders: of the active environments, of every python3 on the PATH, of the user.
fn site_packages(env: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = Vec::new();
    prefixes.extend(["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|name| env(name)).map(PathBuf::from));
    prefixes.extend(env("HOME").map(|home| Path::new(&home).join(".local")));
    let path = env("PATH").unwrap_or_default();
    let pythons = std::env::split_paths(&path).filter(|folder| folder.join("python3").exists());
    prefixes.extend(pythons.filter_map(|folder| folder.parent().map(Path::to_owned)));
    prefixes.dedup();
    let lib_folders = prefixes.iter().flat_map(|prefix| children(&prefix.join("lib"), "python3"));
    lib_folders.flat_map(|lib| [lib.join("site-packages"), lib.join("dist-packages")]).collect()
}

/// Entries of `folder` whose names begin with `prefix`, newest version first as far as names tell.
fn children(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let named = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    let mut paths: Vec<PathBuf> = entries.flatten().filter(named).map(|entry| entry.path()).collect();
    paths.sort();
    paths.reverse();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::fs;

    fn touch(path: &Path) {
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, b"").expect("a file");
    }

    #[test]
    fn toolkits_and_wheels_are_found_and_the_setting_alone_wins() {
        let root = tempfile::tempdir().expect("a folder");
        let toolkit = root.path().join("toolkit/extras/CUPTI/lib64/libcupti.so.12");
        let wheel = root.path().join("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        touch(&toolkit);
        touch(&wheel);
        let mut vars: HashMap<&str, OsString> = HashMap::new();
        vars.insert("CUDA_HOME", root.path().join("toolkit").into());
        vars.insert("VIRTUAL_ENV", root.path().join("venv").into());
        let paths = |vars: &HashMap<&str, OsString>| -> Vec<PathBuf> {
            candidates(&|name| vars.get(name).cloned()).into_iter().map(|candidate| candidate.path).collect()
        };
        let found = paths(&vars);
        assert_eq!(found[0], Path::new("libcupti.so.13"));
        assert!(found.contains(&toolkit) && found.contains(&wheel), "{found:?}");
        vars.insert("GPUTAP_CUPTI", "/somewhere/libcupti.so.13".into());
        assert_eq!(paths(&vars), [Path::new("/somewhere/libcupti.so.13")]);
    }
}
