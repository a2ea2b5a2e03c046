//! The profile, read by a decoder of the test's own that knows nothing but protobuf's wire format.

mod support;

use gputap_export::{Options, pprof};
use gputap_recording::Recording;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// A message's fields by number; numbers and bytes as they come.
#[derive(Debug, Default)]
struct Message {
    numbers: BTreeMap<u64, Vec<u64>>,
    bytes: BTreeMap<u64, Vec<Vec<u8>>>,
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

impl Message {
    fn parse(mut bytes: &[u8]) -> Message {
        let mut message = Message::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            match key & 7 {
                0 => message.numbers.entry(key >> 3).or_default().push(varint(&mut bytes)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    message.bytes.entry(key >> 3).or_default().push(content.to_vec());
                    bytes = rest;
                }
                wire => panic!("wire type {wire}"),
            }
        }
        message
    }

    fn number(&self, field: u64) -> u64 {
        self.numbers.get(&field).map_or(0, |numbers| numbers[0])
    }

    /// A repeated number, packed or not.
    fn all(&self, field: u64) -> Vec<u64> {
        let mut all = self.numbers.get(&field).cloned().unwrap_or_default();
        for packed in self.bytes.get(&field).into_iter().flatten() {
            let mut packed = packed.as_slice();
            while !packed.is_empty() {
                all.push(varint(&mut packed));
            }
        }
        all
    }

    fn messages(&self, field: u64) -> Vec<Message> {
        self.bytes.get(&field).into_iter().flatten().map(|bytes| Message::parse(bytes)).collect()
    }
}

struct Profile {
    message: Message,
    texts: Vec<String>,
}

/// A sample with its stack's names, the leaf first: readable and exact.
struct Sample {
    stack: Vec<(String, String)>,
    values: Vec<u64>,
    labels: BTreeMap<String, String>,
}

impl Profile {
    fn of(recording: &Recording) -> Profile {
        let mut zipped = Vec::new();
        pprof::to_stream(recording, &mut zipped, Path::new("-")).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(zipped.as_slice()).read_to_end(&mut bytes).unwrap();
        let message = Message::parse(&bytes);
        let texts = message.bytes[&6].iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect();
        Profile { message, texts }
    }

    fn text(&self, number: u64) -> String {
        self.texts[number as usize].clone()
    }

    fn samples(&self) -> Vec<Sample> {
        let functions: BTreeMap<u64, (String, String)> = self
            .message
            .messages(5)
            .iter()
            .map(|function| (function.number(1), (self.text(function.number(2)), self.text(function.number(3)))))
            .collect();
        let locations: BTreeMap<u64, (String, String)> = self
            .message
            .messages(4)
            .iter()
            .map(|location| (location.number(1), functions[&location.messages(4)[0].number(1)].clone()))
            .collect();
        let sample = |sample: &Message| Sample {
            stack: sample.all(1).iter().map(|id| locations[id].clone()).collect(),
            values: sample.all(2),
            labels: sample
                .messages(3)
                .iter()
                .map(|label| (self.text(label.number(1)), self.text(label.number(2))))
                .collect(),
        };
        self.message.messages(2).iter().map(sample).collect()
    }

    fn comments(&self) -> Vec<String> {
        self.message.all(13).into_iter().map(|text| self.text(text)).collect()
    }
}

#[test]
fn the_times_of_kernels_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(dir.path());
    let profile = Profile::of(&recording);
    let mut sums: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
    for sample in profile.samples() {
        let rank = sample.labels["rank"].clone();
        assert_eq!(sample.stack.len(), 4);
        assert_eq!(sample.stack[1].0, format!("stream {}", sample.labels["stream"]));
        assert_eq!(sample.stack[2].0, format!("device {}", sample.labels["device"]));
        assert!(sample.stack[3].0.starts_with(&format!("rank {rank} on node-a")), "{}", sample.stack[3].0);
        let symbol = &sample.stack[0].1;
        let symbol = if symbol == "(unnamed)" { "" } else { symbol };
        let sum = sums.entry((rank, symbol.to_owned())).or_default();
        sum[0] += sample.values[0];
        sum[1] += sample.values[1];
    }
    let mut wanted = BTreeMap::new();
    for recorded in recording.processes() {
        let rank = recorded.process.rank.unwrap().to_string();
        wanted.extend(
            support::sums(&support::kernels(recorded)).into_iter().map(|(name, sum)| ((rank.clone(), name), sum)),
        );
    }
    assert!(wanted.len() > 70);
    assert_eq!(sums, wanted);
}

#[test]
fn it_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(dir.path());
    let profile = Profile::of(&recording);
    let types: Vec<[String; 2]> =
        profile.message.messages(1).iter().map(|one| [1, 2].map(|field| profile.text(one.number(field)))).collect();
    assert_eq!(types, [["kernels", "count"], ["gpu_time", "nanoseconds"]]);
    assert_eq!(profile.text(profile.message.number(14)), "gpu_time");
    assert_eq!(profile.texts[0], "");
    let kernels: Vec<_> = recording.processes().iter().flat_map(support::kernels).map(|(kernel, _)| kernel).collect();
    let timed = || kernels.iter().filter(|kernel| support::is_timed(kernel));
    let clock = recording.processes()[0].process.clock.unwrap();
    let first = timed().map(|kernel| kernel.start_ns).min().unwrap();
    let last = timed().map(|kernel| kernel.end_ns).max().unwrap();
    assert_eq!(profile.message.number(9), clock.wall_ns(first));
    assert_eq!(profile.message.number(10), last - first);
}

#[test]
fn kernels_that_look_alike_stay_apart() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::sample(dir.path());
    let samples = Profile::of(&recording).samples();
    let mut symbols: Vec<_> =
        samples.iter().filter(|one| one.stack[0].0 == "PlanA::PlanA()").map(|one| one.stack[0].1.clone()).collect();
    symbols.sort();
    symbols.dedup();
    assert_eq!(symbols, ["_ZN5PlanAC1Ev", "_ZN5PlanAC2Ev"]);
}

#[test]
fn what_the_sums_leave_out_is_a_comment() {
    let dir = tempfile::tempdir().unwrap();
    let lost = vec![gputap_recording::Loss { reason: "overwritten".to_owned(), count: 12, unknown: false }];
    let sample = gputap_sample::Sample { processes: 1, kernels: 30_000, lost, unfinished: true, ..Default::default() };
    sample.write(dir.path()).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let comments = Profile::of(&recording).comments();
    let has = |part: &str| assert!(comments.iter().any(|comment| comment.contains(part)), "{part}: {comments:?}");
    let flawed = support::kernels(&recording.processes()[0]).iter().filter(|(one, _)| !support::is_timed(one)).count();
    assert!(flawed > 0);
    has(&format!("{flawed} kernels have no believable times"));
    has("12 records lost: overwritten");
    has("did not end in order");
}

#[test]
fn nothing_recorded_is_a_profile_without_samples() {
    let dir = tempfile::tempdir().unwrap();
    let recording = support::nothing(&dir.path().join("recording"));
    let path = dir.path().join("gpu.pb.gz");
    let exported = pprof::to_file(&recording, &path, &Options::default()).unwrap();
    assert_eq!(exported.bytes, path.metadata().unwrap().len());
    assert!(Profile::of(&recording).samples().is_empty());
}
