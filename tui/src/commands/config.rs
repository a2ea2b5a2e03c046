use std::process::ExitCode;

use crate::cli::Config;
use crate::error::{Error, Result};
use crate::output::{print, print_json, remark};
use crate::settings::Settings;
use crate::text::{clean, table};

pub fn run(arguments: &Config, settings: &Settings) -> Result<ExitCode> {
    if arguments.json {
        print_json(&settings.rows())?;
    } else {
        print(&in_words(settings))?;
    }
    settings.complaints.iter().for_each(|words| remark(&clean(words)));
    match settings.complaints.len() {
        0 => Ok(ExitCode::SUCCESS),
        count => Err(Error::Settings { count }),
    }
}

fn in_words(settings: &Settings) -> String {
    let mut rows = vec![["SETTING", "VALUE", "FROM", "VARIABLE"].map(str::to_owned).to_vec()];
    let cells =
        |row: crate::settings::Row| vec![row.setting.to_owned(), clean(&row.value), row.from, row.variable.to_owned()];
    rows.extend(settings.rows().into_iter().map(cells));
    let file = match (&settings.file, settings.file_exists) {
        (None, _) => "none: neither XDG_CONFIG_HOME nor HOME is set".to_owned(),
        (Some(path), true) => path.display().to_string(),
        (Some(path), false) => format!("{} (not there)", path.display()),
    };
    format!("{}\nfile: {file}\n", table::aligned(&rows))
}
