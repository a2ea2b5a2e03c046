//! Others that move small records between processes, run as child processes in the same rounds. They are built apart
//! (peers/build), since nobody has to have them: what is missing is skipped, and said.

use super::{
    lanes::{NS, WRITE, WRITE_CLOCK, WRITE_LONGEST},
    readers::WRITE_DRAINED,
    table::Table,
};
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub const LTTNG_DISCARD: &str = "LTTng-UST, 64 bytes with its timestamp, discard mode";
pub const LTTNG_OVERWRITE: &str = "LTTng-UST, 64 bytes with its timestamp, overwrite mode";

const LTTNG: Program = Program {
    file: "lttng-round",
    script: Some("peers/lttng/round"),
    build: "apt-get install lttng-tools liblttng-ust-dev && benches/peers/build lttng",
};
const ICEORYX2: Program = Program { file: "iceoryx2-round", script: None, build: "benches/peers/build iceoryx2" };

/// What is started for a round; prints the nanoseconds of an event.
struct Program {
    /// In the folder `peers` of cargo's target folder.
    file: &'static str,
    /// Gets the program as its first argument; from the folder of this crate.
    script: Option<&'static str>,
    build: &'static str,
}

struct Peer {
    name: &'static str,
    program: &'static Program,
    arguments: &'static [&'static str],
    /// Our row that does the same.
    against: &'static str,
    /// Why it runs no longer, if it does not.
    skipped: Option<String>,
}

pub struct Peers {
    folder: PathBuf,
    peers: Vec<Peer>,
}

impl Peers {
    pub fn find() -> Peers {
        let peer = |name, program, arguments, against| Peer { name, program, arguments, against, skipped: None };
        let peers = vec![
            peer(LTTNG_DISCARD, &LTTNG, &["discard"], WRITE_CLOCK),
            peer(LTTNG_OVERWRITE, &LTTNG, &["overwrite"], WRITE_CLOCK),
            peer("iceoryx2 publish, 64 bytes, subscriber idle", &ICEORYX2, &["64", "idle"], WRITE),
            peer("iceoryx2 publish, 64 bytes, subscriber receiving", &ICEORYX2, &["64", "draining"], WRITE_DRAINED),
            peer("iceoryx2 publish, 64 KiB, subscriber idle", &ICEORYX2, &["65536", "idle"], WRITE_LONGEST),
        ];
        // This program lies in TARGET/release/deps.
        let program = std::env::current_exe().expect("the path of this program");
        let target = program.ancestors().nth(3).map_or_else(PathBuf::new, Path::to_owned);
        Peers { folder: target.join("peers"), peers }
    }

    pub fn round(&mut self, table: &mut Table) {
        for peer in self.peers.iter_mut().filter(|peer| peer.skipped.is_none()) {
            match peer.run(&self.folder) {
                Ok(ns) => table.add(peer.name, NS, peer.against, ns),
                Err(why) => peer.skipped = Some(why),
            }
        }
    }

    pub fn print_skipped(&self) {
        let skipped = self.peers.iter().filter_map(|peer| Some((peer.name, peer.skipped.as_ref()?)));
        for (n, (name, why)) in skipped.enumerate() {
            if n == 0 {
                println!();
            }
            println!("skipped: {name}: {why}");
        }
    }
}

impl Peer {
    fn run(&self, folder: &Path) -> Result<f64, String> {
        let program = folder.join(self.program.file);
        if !program.exists() {
            return Err(format!("{} is not built; to build it: {}", program.display(), self.program.build));
        }
        let mut command = match self.program.script {
            None => Command::new(&program),
            Some(script) => {
                let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(script));
                command.arg(&program);
                command
            }
        };
        let output = command.args(self.arguments).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match said.trim().parse() {
            Ok(ns) if output.status.success() => Ok(ns),
            _ => Err(format!("its round failed ({}): {}", output.status, complained.trim())),
        }
    }
}
