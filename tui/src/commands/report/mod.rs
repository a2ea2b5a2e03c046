mod words;

use std::process::ExitCode;

use gputap_report::{Options, csv};

use crate::cli::{By, Report};
use crate::error::Result;
use crate::output::{print, print_json, remark};
use crate::text;

pub fn run(arguments: &Report) -> Result<ExitCode> {
    let report = gputap_report::Report::of(&arguments.dir, &options(arguments)?)?;
    if arguments.json {
        print_json(&report)?;
    } else if arguments.csv {
        print(&csv(&report))?;
        report.problems.iter().for_each(|problem| remark(&text::clean(problem)));
    } else {
        print(&words::of(&report, arguments.rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &Report) -> Result<Options> {
    let between = match arguments.between.as_slice() {
        [from, to] => Some([from.parse()?, to.parse()?]),
        _ => None,
    };
    let by = arguments.by.map(|by| match by {
        By::Stream => gputap_report::By::Stream,
        By::Device => gputap_report::By::Device,
        By::Rank => gputap_report::By::Rank,
        By::Graph => gputap_report::By::Graph,
        By::Cubin => gputap_report::By::Cubin,
    });
    Ok(Options { between, filter: arguments.filter.clone(), by })
}
