//! The two facts about a binary that decide whether it runs where there is nothing else.

/// `ET_DYN`: the kernel may load it anywhere.
const POSITION_INDEPENDENT: u16 = 3;
/// `PT_INTERP`: names the dynamic linker.
const INTERPRETER: u32 = 3;

#[derive(Debug)]
pub(super) struct Elf {
    pub(super) is_position_independent: bool,
    pub(super) has_interpreter: bool,
}

impl Elf {
    /// Reads the header and the program headers of a 64-bit little-endian file.
    pub(super) fn read(file: &[u8]) -> Option<Self> {
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let half = |at: usize| Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
        let table = u64::from_le_bytes(file.get(32..40)?.try_into().ok()?);
        let (table, size, count) = (usize::try_from(table).ok()?, half(54)?, half(56)?);
        let types: Option<Vec<u32>> = (0..usize::from(count))
            .map(|number| word(table + number * usize::from(size)))
            .collect();
        Some(Self {
            is_position_independent: half(16)? == POSITION_INDEPENDENT,
            has_interpreter: types?.contains(&INTERPRETER),
        })
    }
}

/// A file with program headers of these types and nothing behind them.
#[cfg(test)]
pub(super) fn example(types: &[u32], kind: u16) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[16..18].copy_from_slice(&kind.to_le_bytes());
    file[32..40].copy_from_slice(&64_u64.to_le_bytes());
    file[54..56].copy_from_slice(&56_u16.to_le_bytes());
    file[56..58].copy_from_slice(&u16::try_from(types.len()).unwrap().to_le_bytes());
    for kind in types {
        file.extend(kind.to_le_bytes());
        file.extend([0; 52]);
    }
    file
}

#[cfg(target_os = "linux")]
#[test]
fn this_very_test_is_read_as_what_it_is() {
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let elf = Elf::read(&own).expect("an ELF file");
    assert_eq!(elf.has_interpreter, !cfg!(target_feature = "crt-static"));
}
