//! Prints what is read of a cubin, for `.ci/cubins` to hold against NVIDIA's tools.
//!
//! ```text
//! cubin_facts FILE        architecture, line information, kernels with their figures
//! cubin_facts FILE OFFSETS
//! ```
//! OFFSETS is a file of lines `function offset`; each comes back as `function offset file:line ptx_line`, with `-` for
//! what is not known.

use gputap_reader::symbols::Cubin;
use gputap_reader::symbols::cubin::Lines;
use std::error::Error;
use std::fmt::Display;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [file] => print_kernels(&std::fs::read(file)?),
        [file, offsets] => print_lines(&std::fs::read(file)?, &std::fs::read_to_string(offsets)?),
        _ => Err("usage: cubin_facts FILE [OFFSETS]".into()),
    }
}

fn print_kernels(bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let cubin = Cubin::parse(bytes)?;
    println!("{} {}", cubin.architecture, cubin.line_info);
    for kernel in &cubin.kernels {
        println!(
            "{} code {} registers {} shared {} local {} stack {} max_threads {}",
            String::from_utf8_lossy(&kernel.name),
            kernel.code_bytes,
            or_dash(kernel.registers),
            kernel.static_shared_bytes,
            or_dash(kernel.local_bytes),
            or_dash(kernel.stack_bytes),
            or_dash(kernel.max_threads),
        );
    }
    Ok(())
}

fn print_lines(bytes: &[u8], offsets: &str) -> Result<(), Box<dyn Error>> {
    let (source, ptx) = (Lines::of(bytes)?, Lines::of_ptx(bytes)?);
    for line in offsets.lines() {
        let (function, offset) = line.rsplit_once(' ').ok_or("a line is `function offset`")?;
        let at: u64 = offset.parse()?;
        let source = source.at(function.as_bytes(), at).map(|(file, line)| format!("{file}:{line}"));
        let ptx = ptx.at(function.as_bytes(), at).map(|(_, line)| line);
        println!("{function} {offset} {} {}", or_dash(source), or_dash(ptx));
    }
    Ok(())
}

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}
