use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    #[value(alias = "true")]
    Always,
    #[value(alias = "false")]
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ThemeChoice {
    Auto,
    Dark,
    Light,
}

/// How things look.
#[derive(Args, Clone, Copy, Debug)]
pub struct Look {
    /// When to use colours; NO_COLOR is respected
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: When,
    /// What the terminal's background is: by itself as COLORFGBG says, else in the terminal's own sixteen colours
    #[arg(long, value_name = "GROUND", default_value = "auto", global = true)]
    pub theme: ThemeChoice,
    /// Draw ASCII only; by itself where the locale is not UTF-8
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "auto")]
    #[arg(default_missing_value = "always", global = true)]
    pub ascii: When,
}
