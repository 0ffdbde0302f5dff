//! What the image's program must be.

use crate::support::Result;

const PT_INTERP: u32 = 3;

/// Whether an ELF file (64 bits, little-endian) runs without a loader: an image from scratch has none.
pub fn is_static(program: &[u8]) -> Result<bool> {
    let number = |at: usize, bytes: usize| {
        let field = program.get(at..at + bytes)?;
        Some(field.iter().rev().fold(0_usize, |number, byte| (number << 8) | usize::from(*byte)))
    };
    if program.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("the program is no ELF file of 64 bits".into());
    }
    let headers = || Some((number(32, 8)?, number(54, 2)?, number(56, 2)?));
    let (start, size, count) = headers().ok_or("the ELF header is cut off")?;
    let mut types = (0..count).map(|index| number(start + index * size, 4));
    Ok(!types.any(|kind| kind == Some(PT_INTERP as usize)))
}
