//! Writes small ELF files with only headers and one section with a manifest, and patches real ones.

/// A file to write. The loader reads each field.
pub struct Elf {
    /// `e_type`: 3 is a dynamic library, 1 an object file, 2 an executable, 4 a core dump.
    pub kind: u16,
    /// `e_machine`.
    pub machine: u16,
    /// The manifest.
    pub manifest: Vec<u8>,
}

pub const DYNAMIC: u16 = 3;
pub const OBJECT: u16 = 1;
pub const EXECUTABLE: u16 = 2;
pub const CORE: u16 = 4;

const X86_64: u16 = 62;
const AARCH64: u16 = 183;
const RISCV: u16 = 243;

/// Returns this machine's value in an ELF header.
pub const fn own_machine() -> u16 {
    if cfg!(target_arch = "aarch64") {
        AARCH64
    } else if cfg!(target_arch = "riscv64") {
        RISCV
    } else {
        X86_64
    }
}

/// Returns the value of another machine.
pub const fn foreign_machine() -> u16 {
    if own_machine() == AARCH64 { X86_64 } else { AARCH64 }
}

/// Returns a library for this machine with a given manifest.
pub fn library_with_manifest(manifest: impl Into<Vec<u8>>) -> Vec<u8> {
    Elf { kind: DYNAMIC, machine: own_machine(), manifest: manifest.into() }.write()
}

const HEADER: usize = 64;
const SECTION: usize = 64;
const NAMES: &[u8] = b"\0.jaato_manifest\0.shstrtab\0";
const NAMES_AT: u32 = 17;

impl Elf {
    pub fn write(&self) -> Vec<u8> {
        let names_at = HEADER + self.manifest.len();
        let sections_at = (names_at + NAMES.len()).next_multiple_of(8);
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(16, 0);
        file.extend(self.kind.to_le_bytes());
        file.extend(self.machine.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
        file.extend([0; 16]);
        file.extend((sections_at as u64).to_le_bytes());
        file.extend(0_u32.to_le_bytes());
        for number in [HEADER as u16, 0, 0, SECTION as u16, 3, 2] {
            file.extend(number.to_le_bytes());
        }
        file.extend(&self.manifest);
        file.extend(NAMES);
        file.resize(sections_at, 0);
        file.extend([0; SECTION]);
        write_section_header(&mut file, 1, 1, HEADER, self.manifest.len());
        write_section_header(&mut file, NAMES_AT, 3, names_at, NAMES.len());
        file
    }
}

fn write_section_header(file: &mut Vec<u8>, name: u32, kind: u32, at: usize, bytes: usize) {
    file.extend(name.to_le_bytes());
    file.extend(kind.to_le_bytes());
    for number in [0, 0, at as u64, bytes as u64] {
        file.extend(number.to_le_bytes());
    }
    file.extend([0; 8]);
    for number in [1_u64, 0] {
        file.extend(number.to_le_bytes());
    }
}

/// Replaces a text everywhere in a file's bytes with one of the same length. The text must occur.
pub fn patch_bytes(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len(), "a patch must not change the length");
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "`{from}` is not in the file");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

/// Changes the machine of a library.
pub fn with_machine(bytes: &[u8], machine: u16) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    bytes
}
