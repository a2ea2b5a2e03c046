//! Where cargo put the shared objects.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error("{file} is in none of these folders, build it first: {}", list(searched))]
    NotBuilt { file: String, searched: Vec<PathBuf> },
    #[error("this program's own path is unknown: {0}")]
    Exe(#[from] std::io::Error),
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The path of the library that the crate `name` builds (`fake_cuda` for `libfake_cuda.so`).
///
/// Looks beside this program and one folder up, and in their `deps`: a shared object that is a dependency lies in `deps`,
/// one that was built for itself beside the programs, and both may be there. The newest wins.
pub fn artifact(name: &str) -> Result<PathBuf, ArtifactError> {
    let file = format!("lib{name}.so");
    let exe = std::env::current_exe()?;
    let near: Vec<_> = exe.ancestors().skip(1).take(2).collect();
    let searched: Vec<_> = near.iter().flat_map(|folder| [folder.to_path_buf(), folder.join("deps")]).collect();
    let built = |path: &PathBuf| -> Option<SystemTime> { Path::metadata(path).ok()?.modified().ok() };
    let newest = searched.iter().map(|folder| folder.join(&file)).filter(|p| p.is_file()).max_by_key(built);
    newest.ok_or(ArtifactError::NotBuilt { file, searched })
}
