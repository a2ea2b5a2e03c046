//! `gputap demo`: a simulated job under the real shim, seen by the real reader in the real view. Only the driver and
//! CUPTI are fakes.

mod headless;
mod report;

use std::ffi::OsString;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use gputap_payload::PayloadDir;
use gputap_reader::clock::Now;
use gputap_reader::crc::{Candidate, CuptiCrc, Deadlines, Program};
use gputap_reader::recording::{Recording, Settings};
use gputap_reader::session::Options;
use gputap_ringbuf::discover::Found;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_sim_job::JobSpec;

use crate::cli::{Demo, Format};
use crate::commands::record::Folder;
use crate::error::{Error, Result};
use crate::injection::Places;
use crate::job::Console;
use crate::launch::{self, Prepared};
use crate::output::remark;
use crate::plain::Plan;
use crate::tap::{Attached, Launched, Source};
use crate::view::Theme;
use crate::watch::Looks;
use crate::{terminal, text, watch};

const TITLE: &str = "simulated training job";
/// For the job to end and for what it left to be read.
const END_WITHIN: Duration = Duration::from_secs(2);
/// Where no end was asked for and nobody is there to press a key.
const HEADLESS_SECONDS: f64 = 5.0;

pub fn run(arguments: &Demo, theme: Theme) -> Result<ExitCode> {
    let folder = arguments.output.as_deref().map(Folder::prepare).transpose()?;
    let create = |folder: &Folder| Recording::create(folder.path(), Settings::default(), Now::read());
    let recording = folder.as_ref().map(create).transpose()?;
    let payload = gputap_payload::install_into_user_folder()?;
    let demo = Stage { arguments, payload, folder, recording };
    if arguments.headless || arguments.json {
        headless::run(&demo)
    } else if terminal::is_interactive() {
        demo.on_screen(theme)
    } else {
        demo.as_lines(theme)
    }
}

/// What a demo is played with.
struct Stage<'a> {
    arguments: &'a Demo,
    payload: PayloadDir,
    folder: Option<Folder>,
    recording: Option<Recording>,
}

impl Stage<'_> {
    fn on_screen(&self, theme: Theme) -> Result<ExitCode> {
        let Prepared { job, mut family } = self.prepared(&self.spec(0.0, false), true)?;
        let (rows, columns) = watch::console_size();
        let console = Console::spawn(&job, rows, columns)?;
        family.started(console.pid());
        let mut source = Launched::new(family, TITLE.into(), Instant::now(), |found| self.open(found)).titled(TITLE);
        let until = self.arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
        let looks = Looks { theme, refresh: self.arguments.lines.refresh };
        let shown = watch::demo_on_screen(&mut source, &console, &looks, until);
        console.terminate();
        watch::drain(&mut source, END_WITHIN)?;
        self.finish(&mut source)?;
        shown
    }

    fn as_lines(&self, theme: Theme) -> Result<ExitCode> {
        let spec = self.spec(self.arguments.seconds.unwrap_or(0.0), true);
        let Prepared { job, mut family } = self.prepared(&spec, false)?;
        let mut command = job.to_command();
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().map_err(|source| Error::NotStarted { program: job.program, source })?;
        family.started(child.id());
        let mut source = Launched::new(family, TITLE.into(), Instant::now(), |found| self.open(found)).titled(TITLE);
        let shown = watch::as_lines(&mut source, Plan::new(&self.arguments.lines, Format::Table, None, theme), None);
        // Its standard input closed, the job ends; and with it this wait.
        drop(child.stdin.take());
        child.wait().map_err(|source| Error::Wait { pid: child.id(), source })?;
        watch::drain(&mut source, END_WITHIN)?;
        self.finish(&mut source)?;
        shown
    }

    fn spec(&self, seconds: f64, until_stdin_closes: bool) -> JobSpec {
        let load = &self.arguments.load;
        JobSpec {
            libcuda: self.payload.fake_cuda(),
            threads: load.threads.into(),
            kernels_per_second: load.rate,
            load_churn: load.churn,
            seconds,
            until_stdin_closes,
            ..JobSpec::default()
        }
    }

    fn prepared(&self, spec: &JobSpec, talk: bool) -> Result<Prepared> {
        let binary = std::env::current_exe().map_err(|source| Error::OwnBinary { source })?;
        let mut words: Vec<OsString> = vec![binary.into(), "__sim-job".into()];
        if talk {
            words.push("--talk".into());
        }
        let spec = spec.to_words().map_err(|error| Error::SimJob { words: error.to_string() })?;
        words.extend(spec.into_iter().map(OsString::from));
        let mut variables = Places::default().variables(&self.payload.shim());
        variables.push(("GPUTAP_CUPTI".into(), self.payload.fake_cupti().into()));
        Ok(launch::prepared(&words, variables, BASIC_KINDS))
    }

    /// With the fake CUPTI for its checksums too.
    fn open(&self, found: &Found) -> Result<Box<dyn Source>> {
        let library = Candidate { path: self.payload.fake_cupti(), origin: "the demo" };
        let crc = |program| CuptiCrc::new(program, vec![library], Deadlines::default());
        let options = Options { cupti_crc: Program::this_binary().ok().map(crc), ..Options::all() };
        let attached = Attached::open_with(found, options)?;
        Ok(Box::new(match &self.recording {
            Some(recording) => attached.record_into(recording)?,
            None => attached,
        }))
    }

    fn finish(&self, source: &mut dyn Source) -> Result<()> {
        source.finish()?;
        if let (Some(recording), Some(folder)) = (&self.recording, &self.folder) {
            let written = recording.written();
            if written.segments == 0 {
                folder.remove_if_empty();
            } else {
                let written = recording.finish(Now::read())?;
                let (events, folder) = (text::count(written.events), written.dir.display());
                remark(&format!("recorded {events} events and {} cubins into {folder}", written.cubins));
            }
        }
        source.discard();
        Ok(())
    }
}
