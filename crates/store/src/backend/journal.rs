//! Looks at the engine's log before the engine does. The engine reads a log up to the first batch
//! that is not whole and cuts off the rest without a word: right for a write that power loss has
//! torn, wrong for everything else.
//!
//! A log is a row of batches: a start (count of items, sequence number), the items, an end
//! (checksum, [`MAGIC`]). Numbers are little-endian. Room is taken in advance and reads as zeros.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::manifest::Seal;
use super::mark::{MARK, MARK_BYTES, Mark};
use crate::entry::Revision;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";
const ENDING: &str = "jnl";

/// What stands before a mark in the log: the lengths of key and value, and the key.
const BEFORE_MARK: [u8; 16] = *b"\x06\0\x28\0\0\0\x28\0\0\0commit";

const CHUNK_BYTES: usize = 64 << 10;
static ZEROS: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// What the logs say before anything is opened.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Proven to have been durable; with a flaw, the newest revision seen anywhere.
    pub(super) durable: Revision,
    pub(super) flaw: Option<Flaw>,
    /// A last write that was not finished, to be cut off: the log, and where it ends.
    pub(super) torn: Option<(PathBuf, u64)>,
}

/// The first place where the logs are not as they were written.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) what: String,
    /// The log that can be read up to a place; none where a whole file is missing.
    pub(super) log: Option<(PathBuf, u64)>,
    /// Logs behind it, which lead nowhere without it.
    pub(super) later: Vec<PathBuf>,
}

/// One log, as far as it is whole.
struct Log {
    first: Option<Mark>,
    last: Option<Mark>,
    /// Two marks that do not follow each other.
    gap: Option<(Mark, Mark)>,
    end: u64,
    /// Marks behind the end; none: nothing but zeros is there.
    rest: Option<Vec<Mark>>,
}

/// The number of the newest log.
pub(super) fn newest(engine: &Path) -> io::Result<u64> {
    Ok(logs(engine)?.last().map_or(0, |(number, _)| *number))
}

/// Compares the logs with each other and with what was sealed.
pub(super) fn survey(engine: &Path, seal: &Seal) -> io::Result<Survey> {
    let logs = logs(engine)?;
    let paths = |from: usize| logs[from..].iter().map(|(_, path)| path.clone()).collect();
    let mut survey = Survey::default();
    let (mut last, mut wanted) = (None::<Mark>, None);
    for (at, (number, path)) in logs.iter().enumerate() {
        if wanted.is_some_and(|wanted| wanted != *number) {
            return survey.flawed(missing(number - 1), None, paths(at));
        }
        wanted = Some(number + 1);
        let log = Log::read(path)?;
        let joint = last.zip(log.first).filter(|(last, first)| first.previous > last.revision);
        if let Some((last, next)) = joint.or(log.gap) {
            let (from, to) = (last.revision.next(), next.previous);
            let what = format!("revisions {from} to {to} are missing");
            return survey.flawed(what, None, Vec::new());
        }
        last = log.last.or(last);
        let Some(rest) = log.rest else { continue };
        let what = hole(&name(path), log.end, last, rest.last());
        let is_hole = is_hole(last, &rest);
        if at + 1 < logs.len() || (is_hole && seal.is_synced) {
            survey.seen(rest.last());
            return survey.flawed(what, Some((path.clone(), log.end)), paths(at + 1));
        }
        if is_hole {
            tracing::warn!(what, "a power failure took writes that were not synced");
            continue;
        }
        if seal.is_synced {
            survey.durable = rest.first().map_or(Revision(0), |mark| mark.previous);
        }
        survey.torn = Some((path.clone(), log.end));
    }
    if wanted.is_none_or(|wanted| wanted <= seal.log) {
        return survey.flawed(missing(seal.log), None, Vec::new());
    }
    // Whatever the engine has put elsewhere is older than what it has in its logs.
    if let Some(last) = last.filter(|last| last.revision < seal.revision) {
        let what = format!(
            "the log ends at revision {}, but revision {} with {} objects was durable",
            last.revision, seal.revision, seal.objects
        );
        let torn = survey.torn.take();
        return survey.flawed(what, torn, Vec::new());
    }
    Ok(survey)
}

impl Survey {
    fn flawed(
        mut self,
        what: String,
        log: Option<(PathBuf, u64)>,
        later: Vec<PathBuf>,
    ) -> io::Result<Self> {
        for path in &later {
            self.seen(Log::read(path)?.last.as_ref());
        }
        self.flaw = Some(Flaw { what, log, later });
        Ok(self)
    }

    fn seen(&mut self, mark: Option<&Mark>) {
        self.durable = self.durable.max(mark.map_or(Revision(0), |mark| mark.revision));
    }
}

fn missing(number: u64) -> String {
    format!("the log {number}.{ENDING} is missing")
}

/// Whether more than one commit is broken or follows. If every commit is synced before the next one
/// is written, the first of them was whole once; without syncs, power loss leaves holes anywhere.
fn is_hole(last: Option<Mark>, rest: &[Mark]) -> bool {
    let skips = |last: Mark| rest.first().is_some_and(|next| next.previous > last.revision);
    rest.len() > 1 || last.is_some_and(skips)
}

fn hole(name: &str, end: u64, last: Option<Mark>, furthest: Option<&Mark>) -> String {
    let until = last.map_or_else(String::new, |mark| format!(", after revision {}", mark.revision));
    match furthest {
        None => format!("the log {name} is not readable from byte {end} on{until}"),
        Some(mark) => format!(
            "the log {name} is not readable from byte {end} on{until}; data up to revision {} \
             follows, and everything up to revision {} was durable",
            mark.revision, mark.previous
        ),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The logs with their numbers, oldest first.
fn logs(engine: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut logs = Vec::new();
    for entry in fs::read_dir(engine)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        if let Some(number) = number.filter(|_| path.extension() == Some(ENDING.as_ref())) {
            logs.push((number, path));
        }
    }
    logs.sort();
    Ok(logs)
}

impl Log {
    fn read(path: &Path) -> io::Result<Self> {
        let mut reader = Reader { file: BufReader::new(File::open(path)?), buffer: Vec::new() };
        let mut log = Self { first: None, last: None, gap: None, end: 0, rest: None };
        loop {
            match reader.batch() {
                Ok(mark) => {
                    let gap = log.last.zip(mark).filter(|(a, b)| b.previous > a.revision);
                    log.gap = log.gap.or(gap);
                    log.first = log.first.or(mark);
                    log.last = mark.or(log.last);
                    log.end = reader.file.stream_position()?;
                }
                Err(error) if is_broken(&error) => break,
                Err(error) => return Err(error),
            }
        }
        let mut file = reader.file.into_inner();
        file.seek(SeekFrom::Start(log.end))?;
        log.rest = marks(&mut file)?;
        Ok(log)
    }
}

/// Whether a batch is not whole, in contrast to a file that cannot be read.
fn is_broken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
}

struct Reader {
    file: BufReader<File>,
    buffer: Vec<u8>,
}

impl Reader {
    /// Reads a batch, and the mark in it.
    fn batch(&mut self) -> io::Result<Option<Mark>> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        if self.take()? != [START] {
            return Err(broken());
        }
        let count = u32::from_le_bytes(self.take()?);
        let _sequence_number: [u8; 8] = self.take()?;
        let (mut hasher, mut mark) = (Xxh3::new(), None);
        for _ in 0..count {
            mark = self.item(&mut hasher)?.or(mark);
        }
        let [tag] = self.take()?;
        let check = u64::from_le_bytes(self.take()?);
        let magic: [u8; 4] = self.take()?;
        if tag != END || check != hasher.digest() || magic != MAGIC {
            return Err(broken());
        }
        Ok(mark)
    }

    fn item(&mut self, hasher: &mut Xxh3) -> io::Result<Option<Mark>> {
        let [tag] = self.take()?;
        hasher.update(&[tag]);
        if tag == CLEAR {
            let keyspace: [u8; 8] = self.take()?;
            hasher.update(&keyspace);
            return Ok(None);
        }
        if tag != ITEM {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // Kind, compression, keyspace; lengths of the key, of the value, and of it as stored.
        let head: [u8; 20] = self.take()?;
        hasher.update(&head);
        let [.., k0, k1, _, _, _, _, v0, v1, v2, v3] = head;
        let key_bytes = usize::from(u16::from_le_bytes([k0, k1]));
        let value_bytes = u32::from_le_bytes([v0, v1, v2, v3]);
        let wanted = key_bytes as u64 + u64::from(value_bytes);
        self.buffer.clear();
        // Grows with what is there, whatever the lengths say.
        if self.file.by_ref().take(wanted).read_to_end(&mut self.buffer)? as u64 != wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hasher.update(&self.buffer);
        let (key, value) = self.buffer.split_at(key_bytes);
        Ok(if key == MARK { Mark::decode(value) } else { None })
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// The marks in the rest of a log; none where it holds nothing but zeros.
fn marks(file: &mut File) -> io::Result<Option<Vec<Mark>>> {
    const LONGEST: usize = BEFORE_MARK.len() + MARK_BYTES;
    let (mut marks, mut is_empty) = (Vec::new(), true);
    // What a mark that reaches into the next chunk needs is kept.
    let mut window: Vec<u8> = Vec::with_capacity(CHUNK_BYTES + LONGEST);
    loop {
        let kept = window.len();
        let count = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut window)?;
        if count == 0 {
            return Ok((!is_empty).then_some(marks));
        }
        if window[kept..] == ZEROS[..count] && window[..kept] == ZEROS[..kept] {
            window.clear();
            continue;
        }
        is_empty = false;
        let found = window.windows(LONGEST).filter_map(|part| {
            let mark = part.strip_prefix(&BEFORE_MARK)?;
            Mark::decode(mark)
        });
        marks.extend(found);
        let old = window.len().saturating_sub(LONGEST - 1);
        window.drain(..old);
    }
}
