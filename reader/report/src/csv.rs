//! The table of kernels, or of groups, as CSV: RFC 4180, times in nanoseconds.

use crate::report::{KernelRow, Report};

const COLUMNS: &str = "calls,flagged,total_ns,share,mean_ns,min_ns,p50_ns,p99_ns,max_ns,grid_x,grid_y,grid_z,block_x,\
                       block_y,block_z,registers_per_thread,static_shared_bytes,dynamic_shared_bytes";

/// A line a kernel, or a group where the report is by one, with a head.
pub fn csv(report: &Report) -> String {
    let mut text = String::new();
    if report.by.is_some() {
        text += &format!("group,{COLUMNS}\r\n");
        for row in &report.groups {
            text += &format!("{},{}\r\n", quoted(&row.label), figures(&row.figures));
        }
    } else {
        text += &format!("name,{COLUMNS},cubins,mangled\r\n");
        for row in &report.kernels {
            let (name, cubins, mangled) = (quoted(&row.name), quoted(&row.cubins.join(" ")), quoted(&row.mangled));
            text += &format!("{name},{},{cubins},{mangled}\r\n", figures(row));
        }
    }
    text
}

fn figures(row: &KernelRow) -> String {
    let [gx, gy, gz] = row.grid;
    let [bx, by, bz] = row.block;
    let KernelRow { calls, flagged, total_ns, share, mean_ns, min_ns, p50_ns, p99_ns, max_ns, .. } = row;
    let KernelRow { registers_per_thread, static_shared_bytes, dynamic_shared_bytes, .. } = row;
    format!(
        "{calls},{flagged},{total_ns},{share:.6},{mean_ns:.1},{min_ns},{p50_ns},{p99_ns},{max_ns},{gx},{gy},{gz},{bx},{by},\
         {bz},{registers_per_thread},{static_shared_bytes},{dynamic_shared_bytes}"
    )
}

/// Always in quotes. What a spreadsheet would take for a formula gets an apostrophe before it.
fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('\0', "\u{fffd}").replace('"', "\"\""))
}
