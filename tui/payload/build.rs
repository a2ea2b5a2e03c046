//! Builds the libraries that the binary carries, by a nested cargo.
//!
//! A plain dependency will not do: cargo offers no path to a dependency's cdylib, and under `cargo install` it would be
//! thrown away with the target folder. The nested cargo has a target folder of its own, so the two never wait for each
//! other's lock, and none of the outer build's settings that are meant for one crate reach it.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Package, library file that cargo makes of it, and the folder in the workspace that it is built from.
const LIBRARIES: [(&str, &str, &str); 3] = [
    ("gputap-shim", "libgputap_shim", "shim"),
    ("fake-cuda", "libfake_cuda", "tests/fake-cuda"),
    ("fake-cupti", "libfake_cupti", "tests/fake-cupti"),
];

/// What a person or a CI job sets for every cargo that runs, as against what cargo sets for this one build script.
const KEPT: [&str; 12] = [
    "CARGO",
    "CARGO_HOME",
    "CARGO_MAKEFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_BUILD_JOBS",
    "CARGO_CACHE_RUSTC_INFO",
    "CARGO_NET_",
    "CARGO_HTTP_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_TERM_",
    "CARGO_PROFILE_",
];

/// Set by cargo for this script, or by somebody for the outer build only.
const DROPPED: [&str; 14] = [
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_LINKER",
    "CLIPPY_ARGS",
    "OUT_DIR",
    "TARGET",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "DEBUG",
    "PROFILE",
    "LD_LIBRARY_PATH",
];

fn main() -> Result<()> {
    let root = workspace_root()?;
    let out = PathBuf::from(required("OUT_DIR")?);
    watch(&root);
    let built = build(&root, &out.join("nested"))?;
    for (_, library, _) in LIBRARIES {
        let from = built.join(format!("{library}.so"));
        copy_if_changed(&from, &out.join(format!("{library}.so")))?;
        watch_sources_of(&built.join(format!("{library}.d")));
    }
    Ok(())
}

fn workspace_root() -> Result<PathBuf> {
    let here = PathBuf::from(required("CARGO_MANIFEST_DIR")?);
    let root = here.join("../..").canonicalize()?;
    if root.join("shim/Cargo.toml").is_file() {
        return Ok(root);
    }
    Err(format!("the shim's sources are not at {}: build gputap from a whole checkout", root.display()).into())
}

/// Folders, so that a new file counts too.
fn watch(root: &Path) {
    println!("cargo:rerun-if-changed=build.rs");
    let folders = LIBRARIES.iter().map(|(_, _, folder)| *folder);
    for path in folders.chain(["ringbuf", "Cargo.toml", "Cargo.lock"]) {
        println!("cargo:rerun-if-changed={}", root.join(path).display());
    }
}

/// Whatever else a library was made of, from the `.d` file that cargo leaves beside it (`\ ` is a space in a name).
fn watch_sources_of(dep_info: &Path) {
    let Ok(text) = fs::read_to_string(dep_info) else { return };
    let Some((_, sources)) = text.split_once(": ") else { return };
    for source in sources.replace("\\ ", "\u{0}").split_whitespace() {
        println!("cargo:rerun-if-changed={}", source.replace('\u{0}', " "));
    }
}

/// Returns the folder that holds the libraries.
fn build(root: &Path, target_dir: &Path) -> Result<PathBuf> {
    let triple = required("TARGET")?;
    let release = required("PROFILE")? == "release";
    let mut cargo = Command::new(required("CARGO")?);
    cargo.current_dir(root).args(["build", "--lib", "--quiet"]);
    cargo.arg("--profile").arg(if release { "release" } else { "dev" });
    cargo.arg("--target").arg(&triple).arg("--target-dir").arg(target_dir);
    for (package, _, _) in LIBRARIES {
        cargo.args(["--package", package]);
    }
    for (name, _) in env::vars_os().filter(|(name, _)| leaks(name)) {
        cargo.env_remove(name);
    }
    // Run by hand or by a tool, this script may have no terminal; colours in cargo's log help nobody.
    cargo.env("CARGO_TERM_COLOR", "never");
    let output = cargo.output().map_err(|error| format!("{}: {error}", cargo.get_program().display()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the libraries that gputap carries do not build ({}):\n{words}", output.status).into());
    }
    Ok(target_dir.join(&triple).join(if release { "release" } else { "debug" }))
}

fn leaks(name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    if DROPPED.contains(&name) || name.starts_with("DEP_") {
        return true;
    }
    // CARGO_TARGET_<TRIPLE>_LINKER and the like are wanted, for a cross build and for `.ci/dist`, which links against
    // an older glibc; CARGO_TARGET_DIR is not, nor are flags.
    let for_triple = name.starts_with("CARGO_TARGET_") && !name.ends_with("_DIR") && !name.ends_with("_RUSTFLAGS");
    let kept = KEPT.iter().any(|kept| if kept.ends_with(['_', 'R']) { name.starts_with(kept) } else { name == *kept });
    name.starts_with("CARGO_") && !for_triple && !kept
}

/// An unchanged library keeps its time, so that the crate that includes it is not compiled again.
fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(to, bytes).map_err(|error| format!("{}: {error}", to.display()).into())
}

fn required(name: &str) -> Result<String> {
    env::var(name).map_err(|error| format!("{name}: {error}").into())
}
