//! Writes a recording of a made-up training job into a folder, to look at: `write_sample DIR [KERNELS] [PROCESSES]`.

use gputap_sample::Sample;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("which folder?")?);
    let kernels = arguments.next().map_or(Ok(450_000), |number| number.parse())?;
    let processes = arguments.next().map_or(Ok(4), |number| number.parse())?;
    std::fs::create_dir_all(&dir)?;
    let straggler = Some((processes.min(3) - 1, 30));
    Sample { kernels, processes, straggler, ..Sample::default() }.write(&dir)?;
    Ok(())
}
