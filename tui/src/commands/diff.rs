use std::process::ExitCode;

use gputap_report::{Change, Diff as Difference, Gate, Options, Report};
use serde::Serialize;

use crate::cli::Diff;
use crate::error::Result;
use crate::output::{print, print_json, remark};
use crate::text::{self, duration_ns, grouped, kernel_name, percent, table};

const NAME_MAX_COLUMNS: usize = 100;

#[derive(Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    diff: &'a Difference,
    /// Absent without `--fail-over`.
    gate: Option<&'a Gate>,
}

pub fn run(arguments: &Diff) -> Result<ExitCode> {
    let options = Options { filter: arguments.filter.clone(), ..Options::default() };
    let before = Report::of(&arguments.before, &options)?;
    let after = Report::of(&arguments.after, &options)?;
    let diff = Difference::of(&before, &after);
    let gate = arguments.fail_over.map(|fail_over| diff.gate(fail_over));
    if arguments.json {
        print_json(&Judged { diff: &diff, gate: gate.as_ref() })?;
    } else {
        print(&in_words(&diff, arguments.rows))?;
    }
    let failures = gate.map_or_else(Vec::new, |gate| gate.failures);
    failures.iter().for_each(|failure| remark(&format!("failed: {}", text::clean(failure))));
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn in_words(diff: &Difference, rows_max: usize) -> String {
    let time = |ns: u64| duration_ns(ns as f64);
    let limit = if rows_max == 0 { usize::MAX } else { rows_max };
    let change = diff.change.map_or("-".to_owned(), signed);
    let mut words = format!(
        "before: {}\nafter:  {}\nGPU time of all kernels: {} before, {} after ({change})\n\n",
        text::clean(&diff.before),
        text::clean(&diff.after),
        time(diff.before_ns),
        time(diff.after_ns)
    );
    let titles = ["TOTAL", "CALLS", "BEFORE", "AFTER", "A CALL", "BEFORE", "AFTER", "KERNEL"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(diff.kernels.iter().take(limit).map(row));
    words += &table::aligned(&rows);
    if diff.kernels.len() > limit {
        words += &format!("and {} more kernels; --rows 0 shows all\n", diff.kernels.len() - limit);
    }
    for (what, rows) in [("new", &diff.new), ("vanished", &diff.vanished)] {
        for row in rows.iter().take(limit) {
            let (name, share) = (kernel_name(&row.name, NAME_MAX_COLUMNS), percent(row.share));
            words += &format!("{what}: {name}, {} calls, {} ({share})\n", grouped(row.calls), time(row.total_ns));
        }
        if rows.len() > limit {
            words += &format!("and {} more {what} kernels; --rows 0 shows all\n", rows.len() - limit);
        }
    }
    for one in diff.recompiled.iter().take(limit) {
        let (before, after) = (one.before.join(" "), one.after.join(" "));
        words += &format!(
            "recompiled: {}, cubin {before} before, {after} after\n",
            kernel_name(&one.name, NAME_MAX_COLUMNS)
        );
    }
    diff.problems.iter().fold(words, |words, problem| words + &format!("problem: {}\n", text::clean(problem)))
}

fn row(change: &Change) -> Vec<String> {
    let total_ns = change.total_change_ns;
    let sign = if total_ns < 0 { "-" } else { "+" };
    vec![
        format!("{sign}{}", duration_ns(total_ns.unsigned_abs() as f64)),
        format!("{:+}", i128::from(change.calls_after) - i128::from(change.calls_before)),
        duration_ns(change.total_before_ns as f64),
        duration_ns(change.total_after_ns as f64),
        change.mean_change.map_or("-".to_owned(), signed),
        duration_ns(change.mean_before_ns),
        duration_ns(change.mean_after_ns),
        kernel_name(&change.name, NAME_MAX_COLUMNS),
    ]
}

/// `+5.2%`.
fn signed(share: f64) -> String {
    format!("{:+.1}%", share * 100.0)
}
