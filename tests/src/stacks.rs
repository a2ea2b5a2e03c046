//! Where the threads of a hung process are: from gdb if there is one, and always from /proc.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::watchdog::run_under_watchdog;

const GDB_LIMIT: Duration = Duration::from_secs(60);

/// A page for a person: every thread's name, what it waits for in the kernel, and its stack if gdb can tell.
pub fn dump(pid: u32) -> String {
    let mut page = String::new();
    let mut tasks: Vec<_> =
        fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten().map(|task| task.path()).collect();
    tasks.sort();
    for task in tasks {
        let id = task.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let _ = writeln!(
            page,
            "thread {id} {}: {} in {}, system call {}",
            read(&task, "comm"),
            state(&task),
            read(&task, "wchan"),
            read(&task, "syscall"),
        );
        // The kernel's stack needs privileges that tests seldom have.
        let kernel = read(&task, "stack");
        if !kernel.is_empty() {
            let _ = writeln!(page, "{kernel}");
        }
    }
    page.push_str(&gdb(pid));
    page
}

fn read(task: &Path, file: &str) -> String {
    fs::read_to_string(task.join(file)).unwrap_or_default().trim_end().to_owned()
}

/// The letter after the name in `stat`, for instance S for asleep.
fn state(task: &Path) -> String {
    let stat = read(task, "stat");
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    after_name.split(' ').next().unwrap_or_default().to_owned()
}

fn gdb(pid: u32) -> String {
    let mut command = Command::new("gdb");
    command.args(["-p", &pid.to_string(), "-batch", "-nx", "-ex", "set debuginfod enabled off"]);
    command.args(["-ex", "thread apply all bt 16"]);
    match run_under_watchdog(&mut command, GDB_LIMIT) {
        Ok(finished) => finished.stdout.lines().map(shortened).collect(),
        Err(error) => format!("(no stacks from gdb: {error})\n"),
    }
}

/// Generic names of the standard library run to a page each.
fn shortened(line: &str) -> String {
    const WIDTH: usize = 180;
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…\n", &line[..end]),
        None => format!("{line}\n"),
    }
}
