//! What samples refer to: texts, functions and locations, each once.

use super::profile::{Function, Line, Location, Profile};
use std::collections::HashMap;

/// Of the one mapping.
const MAPPING: u64 = 1;

#[derive(Default)]
pub struct Frames {
    texts: HashMap<String, i64>,
    string_table: Vec<String>,
    /// By what tells it apart: of several kernels with the same readable name each is one.
    by_system_name: HashMap<String, u64>,
    functions: Vec<Function>,
}

impl Frames {
    pub fn new() -> Frames {
        let mut frames = Frames::default();
        frames.text("");
        frames
    }

    pub fn text(&mut self, text: &str) -> i64 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.string_table.len() as i64;
        self.string_table.push(text.to_owned());
        self.texts.insert(text.to_owned(), number);
        number
    }

    /// The number of the location of a frame.
    pub fn frame(&mut self, name: &str, system_name: &str) -> u64 {
        if let Some(id) = self.by_system_name.get(system_name) {
            return *id;
        }
        let id = self.functions.len() as u64 + 1;
        let function = Function { id, name: self.text(name), system_name: self.text(system_name) };
        self.functions.push(function);
        self.by_system_name.insert(system_name.to_owned(), id);
        id
    }

    /// A function has one location, of the same number.
    pub fn finish(self, profile: &mut Profile) {
        let location = |function: &Function| Location {
            id: function.id,
            mapping_id: MAPPING,
            line: vec![Line { function_id: function.id }],
        };
        profile.location = self.functions.iter().map(location).collect();
        profile.function = self.functions;
        profile.string_table = self.string_table;
    }
}
