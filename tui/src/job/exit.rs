//! Exit codes, as shells have them.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The job's own code, or 128 and the signal that killed it.
pub fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

pub fn words_for(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match signal_hook::low_level::signal_name(signal) {
            Some(name) => format!("killed by {name}"),
            None => format!("killed by signal {signal}"),
        },
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words() {
        let exited = ExitStatus::from_raw(7 << 8);
        assert_eq!((code_of(exited), words_for(exited).as_str()), (7, "exit code 7"));
        let killed = ExitStatus::from_raw(9);
        assert_eq!((code_of(killed), words_for(killed).as_str()), (137, "killed by SIGKILL"));
    }
}
