use std::process::ExitCode;

use gputap_reader::recording::{CubinList, KernelFigures, ListedCubin};
use gputap_reader::symbols::demangle;
use serde::Serialize;

use crate::cli::Cubins;
use crate::error::Result;
use crate::output::{print, print_json, remark};
use crate::text::{self, table};

const NAME_MAX_COLUMNS: usize = 100;
/// Of a figure that is not known.
const UNKNOWN: &str = "-";

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    /// Why the index gave nothing; empty where it did.
    index_error: &'a str,
    cubins: Vec<&'a ListedCubin>,
}

pub fn run(arguments: &Cubins) -> Result<ExitCode> {
    let list = CubinList::open(&arguments.dir)?;
    let is_wanted = |cubin: &&ListedCubin| arguments.crc.is_none_or(|crc| has_crc(cubin, crc));
    let cubins: Vec<&ListedCubin> = list.cubins().iter().filter(is_wanted).collect();
    if arguments.json {
        print_json(&Document { index_error: list.index_error(), cubins })?;
        return Ok(ExitCode::SUCCESS);
    }
    if !list.index_error().is_empty() {
        remark(&format!("{}; what lies in the folder is listed", text::clean(list.index_error())));
    }
    let errors = cubins.iter().filter(|cubin| !cubin.error.is_empty());
    errors.for_each(|cubin| remark(&format!("{}: {}", name(cubin), text::clean(&cubin.error))));
    if cubins.is_empty() {
        print(if arguments.crc.is_some() { "no cubin has this CRC\n" } else { "no cubins\n" })?;
    } else if arguments.kernels {
        print(&cubins.iter().map(|cubin| with_kernels(cubin)).collect::<Vec<_>>().join("\n"))?;
    } else {
        print(&in_words(&cubins, first_load_ns(list.cubins())))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn has_crc(cubin: &ListedCubin, crc: u64) -> bool {
    cubin.crc32.map(u64::from) == Some(crc) || cubin.cupti_crc == Some(crc)
}

/// Of all cubins: what the table's times count from.
fn first_load_ns(cubins: &[ListedCubin]) -> u64 {
    cubins.iter().filter_map(|cubin| cubin.first_load_ns).min().unwrap_or(0)
}

fn in_words(cubins: &[&ListedCubin], began_ns: u64) -> String {
    let titles = ["FILE", "SIZE", "CRC32", "CUPTI CRC", "ARCH", "KERNELS", "LINES", "LOADS", "FIRST LOAD"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(cubins.iter().map(|cubin| row(cubin, began_ns)));
    table::aligned(&rows)
}

fn row(cubin: &ListedCubin, began_ns: u64) -> Vec<String> {
    let lines = cubin.line_info.map(|has_lines| if has_lines { "yes" } else { "no" });
    let first_load = cubin.first_load_ns.map(|ns| format!("+{}", text::duration_ns((ns - began_ns) as f64)));
    vec![
        name(cubin),
        text::bytes(cubin.size_bytes),
        or_unknown(cubin.crc32.map(hex)),
        or_unknown(cubin.cupti_crc.map(hex)),
        or_unknown(Some(&cubin.architecture).filter(|architecture| !architecture.is_empty()).cloned()),
        text::count(cubin.kernels.len() as u64),
        or_unknown(lines.map(str::to_owned)),
        or_unknown(cubin.loads.map(text::count)),
        or_unknown(first_load),
    ]
}

fn with_kernels(cubin: &ListedCubin) -> String {
    let architecture = if cubin.architecture.is_empty() { String::new() } else { format!("  {}", cubin.architecture) };
    let crcs = format!("CRC32 {}", or_unknown(cubin.crc32.map(hex)));
    let cupti = format!("CUPTI CRC {}", or_unknown(cubin.cupti_crc.map(hex)));
    let titles = ["REGISTERS", "SHARED", "LOCAL", "STACK", "CODE", "KERNEL"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(cubin.kernels.iter().map(kernel_row));
    format!("{}{architecture}  {crcs}  {cupti}\n{}", name(cubin), table::aligned(&rows))
}

fn kernel_row(kernel: &KernelFigures) -> Vec<String> {
    let size = |bytes: Option<u32>| or_unknown(bytes.map(|bytes| text::bytes(bytes.into())));
    vec![
        or_unknown(kernel.registers.map(|registers| registers.to_string())),
        text::bytes(kernel.static_shared_bytes),
        size(kernel.local_bytes),
        size(kernel.stack_bytes),
        text::bytes(kernel.code_bytes),
        text::kernel_name(&demangle(kernel.name.as_bytes()), NAME_MAX_COLUMNS),
    ]
}

fn name(cubin: &ListedCubin) -> String {
    cubin.file.as_ref().map_or_else(|| "(not kept)".to_owned(), |file| text::clip(file, NAME_MAX_COLUMNS))
}

fn hex(crc: impl std::fmt::LowerHex) -> String {
    format!("{crc:#010x}")
}

fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| UNKNOWN.to_owned())
}
