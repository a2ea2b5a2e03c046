use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man as Page;

use crate::cli::{Cli, Man};
use crate::error::{Error, Result};
use crate::output::{print, remark};

pub fn run(arguments: &Man) -> Result<ExitCode> {
    match &arguments.dir {
        Some(dir) => write_all(dir)?,
        None => print(&page().map_err(Error::Output)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn page() -> io::Result<String> {
    let mut page = Vec::new();
    Page::new(Cli::command()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_all(dir: &Path) -> Result<()> {
    let file = |action| move |source| Error::File { action, path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(file("make the folder"))?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(file("write the pages"))?;
    remark(&format!("wrote the manual pages into {}", dir.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_command() {
        let page = page().unwrap();
        for command in Cli::command().get_subcommands() {
            let reference = format!("gputap\\-{}(1)", command.get_name().replace('-', "\\-"));
            assert_eq!(page.contains(&reference), !command.is_hide_set(), "{reference} in\n{page}");
        }
    }

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let dir = tempfile::tempdir().unwrap();
        write_all(dir.path()).unwrap();
        for command in Cli::command().get_subcommands() {
            let page = fs::read_to_string(dir.path().join(format!("gputap-{}.1", command.get_name())));
            assert_eq!(page.is_ok(), !command.is_hide_set(), "{}", command.get_name());
            let Ok(page) = page else { continue };
            for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
                let written = format!("\\-\\-{}", option.replace('-', "\\-"));
                assert!(page.contains(&written), "{written} of {} in\n{page}", command.get_name());
            }
        }
    }
}
