use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell as Generator;

use crate::cli::{Cli, Completions, Shell};
use crate::error::Result;
use crate::output::print;

const NAME: &str = "gputap";

pub fn run(arguments: &Completions) -> Result<ExitCode> {
    print(&script(arguments.shell))?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> String {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(generator, &mut without_hidden(Cli::command()), NAME, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The generators would offer what is hidden.
fn without_hidden(whole: Command) -> Command {
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new(NAME).version(env!("CARGO_PKG_VERSION")).args(whole.get_arguments().cloned()).subcommands(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_is_told_every_command_and_option() {
        let cli = Cli::command();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            for command in cli.get_subcommands() {
                let name = command.get_name();
                assert_eq!(script.contains(name), !command.is_hide_set(), "{name} for {shell:?}");
                for option in command.get_arguments().filter(|_| !command.is_hide_set()).filter_map(|a| a.get_long()) {
                    let written = if shell == Shell::Fish { format!("-l {option}") } else { format!("--{option}") };
                    assert!(script.contains(&written), "{name} --{option} for {shell:?}");
                }
            }
        }
    }
}
