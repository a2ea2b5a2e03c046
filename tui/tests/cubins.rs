//! The cubins of a recording: of a whole one, and of a folder that has only what a killed recorder left.

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{gputap, json as json_of, run, stderr, stdout};

const LINES: &[u8] = include_bytes!("../../reader/tests/data/two-13.5-sm_90-lineinfo.cubin");
const PLAIN: &[u8] = include_bytes!("../../reader/tests/data/two-13.5-sm_75.cubin");

/// A recording of [`LINES`], loaded twice, and beside its index [`PLAIN`].
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("cubins")).expect("a folder in it");
    let kernel = json!({"name": "_Z5scaleIfEvPT_S0_i", "code_bytes": 512, "registers": 77, "static_shared_bytes": 4288,
        "local_bytes": 384, "stack_bytes": null});
    let entry = json!({"file": keep(folder.path(), LINES), "size_bytes": LINES.len(), "loads": 2,
        "crc32": crc32(LINES), "cupti_crc": 0xabcd, "cupti_crc_reason": "", "architecture": "sm_90", "line_info": true,
        "parse_error": "", "function_count": 2, "functions": [], "kernels": [kernel], "loaded_by": [{"first_load_ns": 1_000_000}]});
    let other = json!({"file": null, "size_bytes": 9, "loads": 1, "crc32": 7, "cupti_crc": 0xabcd,
        "loaded_by": [{"first_load_ns": 3_000_000}], "parse_error": "cut off"});
    fs::write(folder.path().join("index.json"), json!({"cubins": [entry, other]}).to_string()).expect("room");
    keep(folder.path(), PLAIN);
    folder
}

fn keep(folder: &Path, bytes: &[u8]) -> String {
    let name = format!("{:08x}-{}.cubin", crc32(bytes), bytes.len());
    fs::write(folder.join("cubins").join(&name), bytes).expect("room");
    name
}

fn crc32(bytes: &[u8]) -> u32 {
    gputap_reader::crc::crc32(bytes)
}

fn cubins(folder: &Path, options: &[&str]) -> std::process::Output {
    gputap().arg("cubins").arg(folder).args(options).output().expect("gputap runs")
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn the_table_has_a_line_a_cubin_and_standard_error_one_a_fault() {
    let folder = folder();
    let output = cubins(folder.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    let (text, faults) = (stdout(&output), stderr(&output));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    let crc = |bytes| format!("{:#010x}", crc32(bytes));
    assert_eq!(words(lines[1])[3..], [&crc(LINES), "0x0000abcd", "sm_90", "1", "yes", "2", "+0", "ns"], "{text}");
    assert!(lines[2].starts_with("(not kept)") && lines[2].ends_with("+2.00 ms"), "{text}");
    assert_eq!(words(lines[3])[3..], [&crc(PLAIN), "-", "sm_75", "2", "no", "-", "-"], "{text}");
    assert_eq!(faults.lines().count(), 1, "{faults}");
    assert!(faults.contains("(not kept): cut off"), "{faults}");
}

#[test]
fn kernels_come_with_what_they_take() {
    let folder = folder();
    let text = stdout(&cubins(folder.path(), &["--kernels"]));
    let scale = text.lines().find(|line| line.contains("scale<float>")).expect("the kernel, demangled");
    assert_eq!(words(scale)[..8], ["77", "4.29", "kB", "384", "B", "-", "512", "B"], "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("CRC32 0x")).count(), 3, "{text}");
}

#[test]
fn a_crc_of_either_kind_finds_all_that_have_it() {
    let folder = folder();
    let found = |crc: &str| json_of(&cubins(folder.path(), &["--json", "--crc", crc]))["cubins"].clone();
    let sizes =
        |cubins: Value| cubins.as_array().expect("a list").iter().map(|c| c["size_bytes"].clone()).collect::<Vec<_>>();
    assert_eq!(sizes(found("0xabcd")), [json!(LINES.len()), json!(9)]);
    assert_eq!(sizes(found(&format!("{:08x}", crc32(PLAIN)))), [json!(PLAIN.len())]);
    assert_eq!(found("0xabcd")[0]["kernels"][0]["registers"], 77);
    assert_eq!(stdout(&cubins(folder.path(), &["--crc", "0x1"])), "no cubin has this CRC\n");
}

#[test]
fn what_is_no_recording_is_an_error() {
    let empty = tempfile::tempdir().expect("a folder");
    for (folder, words) in [(empty.path().to_owned(), "is no recording"), (empty.path().join("x"), "No such file")] {
        let output = cubins(&folder, &[]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(stderr(&output).contains(words) && stdout(&output).is_empty(), "{output:?}");
    }
}

#[test]
fn a_broken_index_does_not_hide_the_files() {
    let folder = folder();
    fs::write(folder.path().join("index.json"), "{\"cubins\": [").expect("room");
    let output = cubins(folder.path(), &[]);
    assert!(output.status.success() && stdout(&output).lines().count() == 3, "{output:?}");
    assert!(stderr(&output).contains("index.json"), "{output:?}");
}

#[test]
fn a_recording_of_the_simulated_job_lists_what_was_loaded() {
    let base = tempfile::tempdir().expect("a folder");
    let folder = base.path().join("run");
    let folder = folder.to_str().expect("a path in UTF-8");
    let demo = run(&["demo", "--headless", "--seconds", "1", "-o", folder]);
    assert!(demo.status.success(), "{demo:?}");
    let list = json_of(&cubins(Path::new(folder), &["--json"]));
    let listed = list["cubins"].as_array().expect("a list");
    assert!(!listed.is_empty() && list["index_error"] == "", "{list}");
    for cubin in listed {
        assert_eq!((&cubin["error"], &cubin["is_in_index"]), (&json!(""), &json!(true)), "{cubin}");
        assert!(cubin["kernels"].as_array().is_some_and(|kernels| !kernels.is_empty()), "{cubin}");
        assert!(cubin["loads"].as_u64() >= Some(1) && cubin["first_load_ns"].as_u64() > Some(0), "{cubin}");
    }
    let found = json_of(&cubins(
        Path::new(folder),
        &["--json", "--crc", &format!("{:x}", listed[0]["crc32"].as_u64().expect("a number"))],
    ));
    assert_eq!(found["cubins"][0]["file"], listed[0]["file"]);
}
