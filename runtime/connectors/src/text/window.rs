//! Short texts, looked at in a window of fixed size that may reach beyond them, without a branch that depends on their length or on what
//! stands in them: the compiler compares many bytes at once then. It may not know what is looked for.

/// Bytes of a window.
pub(crate) const WINDOW: usize = 64;

/// As many bytes that are all ones as a window has, then as many zeros.
static UP_TO: [u8; 2 * WINDOW] = {
    let mut mask = [0; 2 * WINDOW];
    let mut at = 0;
    while at < WINDOW {
        mask[at] = 0xff;
        at += 1;
    }
    mask
};

/// The window that begins there, if the data has so many bytes and the text is no longer than it.
#[inline(always)]
pub(crate) fn window(data: &[u8], start: usize, len: usize) -> Option<&[u8; WINDOW]> {
    data.get(start..start.wrapping_add(WINDOW))?.first_chunk().filter(|_| len <= WINDOW)
}

/// What the first `len` bytes of a window have of the bits that `bits` gives each.
#[inline(always)]
pub(crate) fn any(window: &[u8; WINDOW], len: usize, bits: impl Fn(u8) -> u8) -> u8 {
    let mask = &UP_TO[WINDOW - len..2 * WINDOW - len];
    (0..WINDOW).fold(0, |all, k| all | bits(window[k]) & mask[k])
}

/// The windows that a text of more bytes than one is covered by: one behind the other, the last one as far back as it must be.
#[inline(always)]
pub(crate) fn windows(text: &[u8]) -> Option<impl Iterator<Item = (usize, &[u8; WINDOW])>> {
    let last = text.len().checked_sub(WINDOW)?;
    let at = (0..last).step_by(WINDOW).chain([last]);
    Some(at.filter_map(|at| Some((at, text.get(at..)?.first_chunk()?))))
}

/// The same of a text of at most 32 bytes by its first 16 and its last; one of less has those that are its own at the start of both.
#[inline(always)]
pub(crate) fn any_of_ends(first: &[u8; 16], last: &[u8; 16], len: usize, bits: impl Fn(u8) -> u8) -> u8 {
    // Side by side: so few bytes as 16 would be compared one by one.
    let (mut both, mut mask) = ([0; 32], [0; 32]);
    let up_to = &UP_TO[WINDOW - len.min(16)..WINDOW + 16 - len.min(16)];
    both[..16].copy_from_slice(first);
    both[16..].copy_from_slice(last);
    mask[..16].copy_from_slice(up_to);
    mask[16..].copy_from_slice(up_to);
    (0..32).fold(0, |all, k| all | bits(both[k]) & mask[k])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_of_the_text_count() {
        let data: Vec<u8> = (0..100).collect();
        for len in 0..=WINDOW {
            let window = window(&data, 30, len).unwrap();
            for wanted in 30..94 {
                let found = any(window, len, |byte| u8::from(byte == wanted));
                assert_eq!(found != 0, (wanted as usize) < 30 + len, "{wanted} in {len} bytes");
            }
        }
        for len in 0..WINDOW {
            assert!(windows(&data[..len]).is_none());
        }
        for (len, at) in [(64, vec![0]), (65, vec![0, 1]), (100, vec![0, 36])] {
            assert!(
                windows(&data[..len])
                    .unwrap()
                    .map(|(at, window)| (at, window[0] as usize))
                    .eq(at.iter().map(|&at| (at, at)))
            );
        }
        let long: Vec<u8> = (0..200).collect();
        assert!(windows(&long[..128]).unwrap().map(|(at, _)| at).eq([0, 64]));
        assert!(windows(&long).unwrap().map(|(at, _)| at).eq([0, 64, 128, 136]));
        for len in 0..=32 {
            let last = 30 + len.max(16) - 16;
            let (first, last) = (data[30..].first_chunk().unwrap(), data[last..].first_chunk().unwrap());
            for wanted in 30..94 {
                let found = any_of_ends(first, last, len, |byte| u8::from(byte == wanted));
                assert_eq!(found != 0, (wanted as usize) < 30 + len, "{wanted} in {len} bytes by their ends");
            }
        }
        assert!(
            window(&data, 37, 3).is_none() && window(&data, 36, 65).is_none() && window(&data, usize::MAX, 0).is_none()
        );
    }
}
