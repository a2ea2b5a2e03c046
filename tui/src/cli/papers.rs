use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
#[command(after_help = "Exit code 2 where something in the settings cannot be used.")]
pub struct Config {
    /// One JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  gputap completions bash > ~/.local/share/bash-completion/completions/gputap
  gputap completions zsh > ~/.zfunc/_gputap       where ~/.zfunc is in fpath
  gputap completions fish > ~/.config/fish/completions/gputap.fish")]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args, Debug)]
#[command(after_help = "For a look: gputap man | man -l -")]
pub struct Man {
    /// The folder to write a page a command into, as ~/.local/share/man/man1
    pub dir: Option<PathBuf>,
}
