//! glibc's allocator, asked and told: how much heap it holds, how much of that is free, and to give the free part back.
//! What no other safe crate offers stands here behind safe functions; nothing else may call into C.

use serde::Serialize;

/// What the allocator holds for this process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Heap {
    /// Arenas that were ever made; each keeps a heap of its own.
    pub arenas: u64,
    /// What all arenas together have from the system, in MiB.
    pub held_mib: f64,
    /// What of it no one uses, in MiB.
    pub free_mib: f64,
}

/// Bytes in a MiB.
const MIB: f64 = 1_048_576.0;

impl Heap {
    /// Reads what `malloc_info` writes: an element `heap` for each arena, after the last one the sums over all.
    fn parse(text: &str) -> Option<Self> {
        let arenas = text.matches("<heap nr=").count() as u64;
        let sums = &text[text.rfind("</heap>")?..];
        let attribute = |element: &str, name: &str| -> Option<u64> {
            let rest = &sums[sums.find(element)?..];
            let rest = &rest[rest.find(name)? + name.len()..];
            rest.split('"').nth(1)?.parse().ok()
        };
        let held = attribute("<system type=\"current\"", "size=")?;
        let free = attribute("<total type=\"fast\"", "size=")?
            + attribute("<total type=\"rest\"", "size=")?;
        Some(Self {
            arenas,
            held_mib: held as f64 / MIB,
            free_mib: free as f64 / MIB,
        })
    }
}

/// Gives free heap back to the system; whether there was any to give.
///
/// # Errors
/// Where the allocator is not glibc's.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "malloc_trim is a C function; no crate offers it safely"
)]
pub fn trim() -> Result<bool, &'static str> {
    // SAFETY: malloc_trim takes the allocator's own locks, touches free memory only, and takes any padding.
    Ok(unsafe { libc::malloc_trim(0) } == 1)
}

/// What the allocator holds just now. Takes a moment for each arena, longer the more free pieces there are.
///
/// # Errors
/// Where the allocator is not glibc's, or does not tell.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "malloc_info is a C function that writes to a C stream; no crate offers it safely"
)]
pub fn state() -> Result<Heap, &'static str> {
    let mut buffer: *mut libc::c_char = std::ptr::null_mut();
    let mut size: libc::size_t = 0;
    // SAFETY: both places outlive the stream, which is closed below before either is read.
    let stream = unsafe { libc::open_memstream(&raw mut buffer, &raw mut size) };
    if stream.is_null() {
        return Err("there is no memory to ask the allocator with");
    }
    // SAFETY: the stream is open, options must be 0, and malloc_info takes the allocator's own locks.
    let told = unsafe { libc::malloc_info(0, stream) };
    // SAFETY: the stream is open and not used after this; closing it completes buffer and size.
    let closed = unsafe { libc::fclose(stream) };
    let heap = if told == 0 && closed == 0 && !buffer.is_null() {
        // SAFETY: after fclose the buffer holds `size` bytes that nobody else writes to, until it is freed below.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), size) };
        Heap::parse(&String::from_utf8_lossy(bytes))
    } else {
        None
    };
    // SAFETY: open_memstream's buffer is the caller's to free, once; free takes null too.
    unsafe { libc::free(buffer.cast()) };
    heap.ok_or("the allocator did not tell what it holds")
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
const NOT_GLIBC: &str = "this system's allocator is not glibc's, which alone is asked here";

/// Gives free heap back to the system; whether there was any to give.
///
/// # Errors
/// Always: the allocator is not glibc's.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn trim() -> Result<bool, &'static str> {
    Err(NOT_GLIBC)
}

/// What the allocator holds just now.
///
/// # Errors
/// Always: the allocator is not glibc's.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn state() -> Result<Heap, &'static str> {
    Err(NOT_GLIBC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sums_stand_after_the_last_arena() {
        let text = r#"<malloc version="1"><heap nr="0"><total type="rest" count="9" size="9"/>
            <system type="current" size="1"/></heap><heap nr="1"><system type="current" size="2"/></heap>
            <total type="fast" count="2" size="1024"/><total type="rest" count="3" size="261120"/>
            <total type="mmap" count="0" size="0"/><system type="current" size="524288"/>
            <system type="max" size="280000"/></malloc>"#;
        let expected = Heap {
            arenas: 2,
            held_mib: 0.5,
            free_mib: 0.25,
        };
        assert_eq!(Heap::parse(text), Some(expected));
        assert_eq!(Heap::parse("<malloc/>"), None);
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_is_freed_in_small_pieces_is_free_until_it_is_trimmed() {
        let held: Vec<Box<[u8]>> = (0..200_000).map(|_| vec![1; 100].into()).collect();
        let full = state().unwrap();
        assert!(full.arenas >= 1 && full.held_mib >= 20.0, "{full:?}");
        drop(held);
        let freed = state().unwrap();
        assert!(freed.free_mib > full.free_mib, "{full:?} {freed:?}");
        trim().unwrap();
    }
}
