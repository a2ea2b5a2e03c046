//! One sequence of packets: those of one process, with interned texts of their own.
//!
//! A text gets its id in the packet that first uses it. The first packet of a sequence says that nothing is interned
//! (SEQ_INCREMENTAL_STATE_CLEARED), and so does a packet whenever too much is: a reader's memory is bounded as ours is.

use super::proto::{
    CLOCK_REALTIME, DebugAnnotation, InternedData, InternedName, SEQ_INCREMENTAL_STATE_CLEARED,
    SEQ_NEEDS_INCREMENTAL_STATE, TracePacket, TracePacketDefaults, TrackDescriptor, TrackEvent,
};
use crate::readable::Readable;
use crate::{ExportError, Output};
use gputap_recording::Name;
use prost::Message;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// Texts that are interned before all are forgotten.
const TEXTS_MAX: usize = 1 << 14;
/// And their bytes: names are at most 8 KiB each.
const TEXTS_MAX_BYTES: usize = 16 << 20;

/// The namespaces of interned ids, by the field of `InternedData`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Space {
    Category,
    Name,
    Key,
    Value,
}

/// A text that is worth an id: how it is found again, and what it is made of once it has to be written.
#[derive(Clone, Copy, Debug)]
pub enum Text<'e> {
    Fixed(&'static str),
    Numbered(&'static str, u32),
    /// Of the recording, by its index there.
    Recorded(u32, &'e Name),
    /// Grids and blocks, of which there are few.
    Size([u32; 3]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TextKey {
    Fixed(&'static str),
    Numbered(&'static str, u32),
    Recorded(u32),
    Size([u32; 3]),
}

/// What an annotation says.
#[derive(Clone, Copy, Debug)]
pub enum Detail<'e> {
    Number(u64),
    Text(Text<'e>),
}

pub struct Sequence<'a> {
    output: &'a mut Output,
    id: u32,
    texts: HashMap<(Space, TextKey), u64>,
    readable: Readable,
    bytes: usize,
    next: u64,
    /// What the next packet has to define first.
    fresh: InternedData,
    is_cleared: bool,
    packet: TracePacket,
    buffer: Vec<u8>,
}

/// An event before its texts have ids.
pub struct Drawn<'e> {
    pub kind: i32,
    pub wall_ns: u64,
    pub track_uuid: u64,
    pub category: Option<&'static str>,
    pub name: Option<Text<'e>>,
    pub details: &'e [(&'static str, Detail<'e>)],
    pub flow: Option<u64>,
    pub ends_flow: Option<u64>,
}

impl<'a> Sequence<'a> {
    /// `id` is not 0, and no other sequence has it.
    pub fn new(output: &'a mut Output, id: u32) -> Sequence<'a> {
        Sequence {
            output,
            id,
            texts: HashMap::new(),
            readable: Readable::default(),
            bytes: 0,
            next: 1,
            fresh: InternedData::default(),
            is_cleared: true,
            packet: TracePacket { track_event: Some(TrackEvent::default()), ..TracePacket::default() },
            buffer: Vec::new(),
        }
    }

    pub fn describe(&mut self, track: TrackDescriptor) -> Result<(), ExportError> {
        // Needs no interned text, but is the first packet of the sequence at times.
        let mut packet = TracePacket { track_descriptor: Some(track), ..TracePacket::default() };
        self.seal(&mut packet);
        self.write(&packet)
    }

    pub fn draw(&mut self, drawn: &Drawn<'_>) -> Result<(), ExportError> {
        self.forget_if_full();
        let mut packet = std::mem::take(&mut self.packet);
        packet.timestamp = Some(drawn.wall_ns);
        let event = packet.track_event.get_or_insert_default();
        event.kind = Some(drawn.kind);
        event.track_uuid = Some(drawn.track_uuid);
        event.name_iid = drawn.name.map(|name| self.text(Space::Name, name));
        event.category_iids.clear();
        event.category_iids.extend(drawn.category.map(|category| self.text(Space::Category, Text::Fixed(category))));
        event.debug_annotations.clear();
        for (key, detail) in drawn.details {
            event.debug_annotations.push(self.annotation(key, *detail));
        }
        event.flow_ids.clear();
        event.flow_ids.extend(drawn.flow);
        event.terminating_flow_ids.clear();
        event.terminating_flow_ids.extend(drawn.ends_flow);
        self.seal(&mut packet);
        let written = self.write(&packet);
        self.packet = packet;
        written
    }

    /// A value that stands until the next.
    pub fn count(&mut self, wall_ns: u64, track_uuid: u64, value: Value) -> Result<(), ExportError> {
        let (counter_value, double_counter_value) = match value {
            Value::Whole(whole) => (Some(whole), None),
            Value::Part(part) => (None, Some(part)),
        };
        let event = TrackEvent {
            kind: Some(super::proto::COUNTER),
            track_uuid: Some(track_uuid),
            counter_value,
            double_counter_value,
            ..TrackEvent::default()
        };
        let mut packet = TracePacket { timestamp: Some(wall_ns), track_event: Some(event), ..TracePacket::default() };
        self.seal(&mut packet);
        self.write(&packet)
    }

    fn forget_if_full(&mut self) {
        if self.texts.len() < TEXTS_MAX && self.bytes < TEXTS_MAX_BYTES {
            return;
        }
        self.texts.clear();
        self.fresh = InternedData::default();
        (self.bytes, self.next, self.is_cleared) = (0, 1, true);
    }

    fn annotation(&mut self, key: &'static str, detail: Detail<'_>) -> DebugAnnotation {
        let name_iid = Some(self.text(Space::Key, Text::Fixed(key)));
        let (uint_value, string_value_iid) = match detail {
            Detail::Number(number) => (Some(number), None),
            Detail::Text(text) => (None, Some(self.text(Space::Value, text))),
        };
        DebugAnnotation { name_iid, uint_value, string_value_iid }
    }

    fn text(&mut self, space: Space, text: Text<'_>) -> u64 {
        let key = match text {
            Text::Fixed(text) => TextKey::Fixed(text),
            Text::Numbered(text, number) => TextKey::Numbered(text, number),
            Text::Recorded(index, _) => TextKey::Recorded(index),
            Text::Size(size) => TextKey::Size(size),
        };
        if let Some(&iid) = self.texts.get(&(space, key)) {
            return iid;
        }
        let written: Arc<str> = match text {
            Text::Fixed(text) => text.into(),
            Text::Numbered(text, number) => format!("{text} {number}").into(),
            Text::Recorded(index, name) => self.readable.of(index, name),
            Text::Size(size) => format!("{size:?}").into(),
        };
        let iid = self.intern(space, &written);
        self.texts.insert((space, key), iid);
        iid
    }

    /// Ids are unique among all spaces, which is more than is asked for.
    fn intern(&mut self, space: Space, text: &str) -> u64 {
        let iid = self.next;
        self.next += 1;
        self.bytes += text.len();
        let fresh = InternedName { iid: Some(iid), name: Some(text.to_owned()) };
        match space {
            Space::Category => self.fresh.event_categories.push(fresh),
            Space::Name => self.fresh.event_names.push(fresh),
            Space::Key => self.fresh.debug_annotation_names.push(fresh),
            Space::Value => self.fresh.debug_annotation_string_values.push(fresh),
        }
        iid
    }

    /// What every packet of the sequence has.
    fn seal(&mut self, packet: &mut TracePacket) {
        packet.trusted_packet_sequence_id = Some(self.id);
        let mut flags = SEQ_NEEDS_INCREMENTAL_STATE;
        packet.trace_packet_defaults = None;
        if std::mem::take(&mut self.is_cleared) {
            flags |= SEQ_INCREMENTAL_STATE_CLEARED;
            // Defaults are part of what is cleared.
            packet.trace_packet_defaults = Some(TracePacketDefaults { timestamp_clock_id: Some(CLOCK_REALTIME) });
        }
        packet.sequence_flags = Some(flags);
        let has_fresh = self.fresh != InternedData::default();
        packet.interned_data = has_fresh.then(|| std::mem::take(&mut self.fresh));
    }

    fn write(&mut self, packet: &TracePacket) -> Result<(), ExportError> {
        write_packet(self.output, &mut self.buffer, packet)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Whole(i64),
    Part(f64),
}

/// A trace is its packets one after the other, each as field 1 of it.
pub fn write_packet(output: &mut Output, buffer: &mut Vec<u8>, packet: &TracePacket) -> Result<(), ExportError> {
    const PACKET_FIELD: u8 = 1 << 3 | 2;
    buffer.clear();
    buffer.push(PACKET_FIELD);
    prost::encoding::encode_varint(packet.encoded_len() as u64, buffer);
    packet.encode_raw(buffer);
    let written = output.write_all(buffer);
    output.wrote(written)
}
