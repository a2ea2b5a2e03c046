use std::process::ExitCode;

use serde_json::{Map, Value};

use crate::cli::Env;
use crate::error::Result;
use crate::injection::{self, Places};
use crate::output::{print, print_json, remark};

pub fn run(arguments: &Env) -> Result<ExitCode> {
    let payload = gputap_payload::install_into_user_folder()?;
    let places = Places::now();
    let variables = places.variables(&payload.shim());
    if let Some(path) = places.other_nvtx() {
        remark(&injection::words_for_other_nvtx(path));
    }
    let text = variables.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy()));
    if arguments.json {
        let object: Map<String, Value> = text.map(|(name, value)| (name.into(), Value::String(value.into()))).collect();
        print_json(&object)?;
    } else {
        let lines: String = text.map(|(name, value)| format!("export {name}={}\n", quoted(&value))).collect();
        print(&lines)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// For sh: in single quotes where anything but the plainest characters is in it.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,".contains(c);
    if value.chars().all(plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quotes_what_a_shell_would_take_apart() {
        assert_eq!(quoted("/home/a/.cache/x-1.so"), "/home/a/.cache/x-1.so");
        assert_eq!(quoted("/home/a b/it's"), r"'/home/a b/it'\''s'");
        assert_eq!(quoted("$(reboot)"), "'$(reboot)'");
    }
}
