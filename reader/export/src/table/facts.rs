//! The tables that are not of events: one row a process, and rows for what it lost, its devices and its modules.

use super::rows::Rows;
use super::schema::{Content, Source, Table};
use super::texts::Texts;
use super::walk::of_process;
use gputap_recording::{Module, Process, Status};
use std::collections::BTreeMap;

/// What is known of a process when all was read. Of a module, and of the status, the last word stands.
#[derive(Default)]
pub struct Facts {
    modules: BTreeMap<u32, Module>,
    pub status: Option<Status>,
}

enum Cell<'a> {
    Text(&'a str),
    Number(u64),
    None,
}

impl Facts {
    pub fn module(&mut self, module: Module) {
        self.modules.insert(module.slot, module);
    }

    pub fn tables(&self, process: &Process, texts: &mut Texts) -> [(Table, Rows); 4] {
        [
            self.processes(process, texts),
            self.losses(process, texts),
            devices(process, texts),
            self.modules(process, texts),
        ]
    }

    fn processes(&self, process: &Process, texts: &mut Texts) -> (Table, Rows) {
        let mut table = Builder::new("processes", process, texts);
        table.columns(&[
            ("pid_outside", Content::Id, true),
            ("pid_namespace", Content::Wide, false),
            ("start_ticks", Content::Wide, false),
            ("boot_id", Content::Text, false),
            ("command", Content::Text, false),
            ("variables", Content::Text, false),
            ("cupti_version", Content::Id, false),
            ("driver_version", Content::Id, false),
            ("clock_source", Content::Text, false),
            ("clock_monotonic_ns", Content::Time, true),
            ("clock_realtime_ns", Content::Time, true),
            ("clock_error_ns", Content::Time, true),
            ("began", Content::Wall, true),
            ("attempted", Content::Quantity, true),
            ("delivered", Content::Quantity, true),
            ("pending", Content::Quantity, true),
            ("state", Content::Text, true),
            ("complete", Content::Flag, false),
            ("recorder_version", Content::Text, false),
        ]);
        let clock = process.clock;
        let status = self.status.as_ref();
        // Lists and maps of texts always serialize.
        let command = serde_json::to_string(&process.command).unwrap_or_default();
        let variables = serde_json::to_string(&process.variables).unwrap_or_default();
        table.row(&[
            number(process.pid_outside),
            Cell::Number(process.pid_namespace),
            Cell::Number(process.start_ticks),
            Cell::Text(&process.boot_id),
            Cell::Text(&command),
            Cell::Text(&variables),
            Cell::Number(process.cupti_version.into()),
            Cell::Number(process.driver_version.into()),
            Cell::Text(&process.clock_source),
            number(clock.map(|clock| clock.monotonic_ns)),
            number(clock.map(|clock| clock.realtime_ns)),
            number(clock.map(|clock| clock.error_ns)),
            number(clock.map(|clock| clock.realtime_ns)),
            number(status.map(|status| status.attempted)),
            number(status.map(|status| status.delivered)),
            number(status.map(|status| status.pending)),
            status.map_or(Cell::None, |status| Cell::Text(&status.state)),
            Cell::Number(status.is_some_and(|status| status.complete).into()),
            Cell::Text(&process.recorder_version),
        ]);
        table.finish()
    }

    fn losses(&self, process: &Process, texts: &mut Texts) -> (Table, Rows) {
        let mut table = Builder::new("losses", process, texts);
        table.columns(&[
            ("reason", Content::Text, false),
            ("count", Content::Quantity, false),
            ("unknown", Content::Flag, false),
        ]);
        for loss in self.status.iter().flat_map(|status| &status.lost) {
            table.row(&[Cell::Text(&loss.reason), Cell::Number(loss.count), Cell::Number(loss.unknown.into())]);
        }
        table.finish()
    }

    fn modules(&self, process: &Process, texts: &mut Texts) -> (Table, Rows) {
        let mut table = Builder::new("modules", process, texts);
        table.columns(&[
            ("slot", Content::Id, false),
            ("crc32", Content::Id, false),
            ("size_bytes", Content::Quantity, false),
            ("file", Content::Text, true),
            ("loads", Content::Quantity, false),
            ("first_load_ns", Content::Time, false),
            ("cupti_crc", Content::Wide, true),
        ]);
        for module in self.modules.values() {
            table.row(&[
                Cell::Number(module.slot.into()),
                Cell::Number(module.crc32.into()),
                Cell::Number(module.size_bytes),
                module.file.as_deref().map_or(Cell::None, Cell::Text),
                Cell::Number(module.loads),
                Cell::Number(module.first_load_ns),
                number(module.cupti_crc),
            ]);
        }
        table.finish()
    }
}

fn devices(process: &Process, texts: &mut Texts) -> (Table, Rows) {
    let mut table = Builder::new("devices", process, texts);
    table.columns(&[
        ("device", Content::Id, false),
        ("uuid", Content::Text, false),
        ("device_name", Content::Text, false),
    ]);
    for device in &process.devices {
        table.row(&[Cell::Number(device.ordinal.into()), Cell::Text(&device.uuid), Cell::Text(&device.name)]);
    }
    table.finish()
}

fn number(number: Option<impl Into<u64>>) -> Cell<'static> {
    number.map_or(Cell::None, |number| Cell::Number(number.into()))
}

struct Builder<'a> {
    table: Table,
    of_process: Vec<Option<u64>>,
    rows: Rows,
    texts: &'a mut Texts,
}

impl<'a> Builder<'a> {
    fn new(name: &'static str, process: &Process, texts: &'a mut Texts) -> Builder<'a> {
        let table = Table::of_process(name);
        let of_process = table.sources.iter().map(|source| of_process(*source, process, texts)).collect();
        Builder { table, of_process, rows: Rows::default(), texts }
    }

    fn columns(&mut self, columns: &[(&str, Content, bool)]) {
        for (name, content, nullable) in columns {
            self.table.add(name, *content, *nullable, Source::Given);
        }
        self.rows = Rows::of(&self.table.columns);
    }

    fn row(&mut self, cells: &[Cell<'_>]) {
        let given = cells.iter().map(|cell| match cell {
            Cell::Text(text) => Some(self.texts.number(text)),
            Cell::Number(number) => Some(*number),
            Cell::None => None,
        });
        let row: Vec<Option<u64>> = self.of_process.iter().copied().chain(given).collect();
        self.rows.push(&row);
    }

    fn finish(self) -> (Table, Rows) {
        (self.table, self.rows)
    }
}
