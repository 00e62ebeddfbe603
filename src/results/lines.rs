//! Files of lines, whole or piece by piece, as they are or compressed. What follows the last line end was cut by a kill and
//! never counts.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Most bytes that a compressed file may unpack to.
const LARGEST: u64 = 4 << 30;

/// A file's bytes up to its last line end; `None` when there is no such file.
pub(super) fn whole_lines(path: &Path) -> Result<Option<Vec<u8>>> {
    let mut bytes = if path.exists() {
        std::fs::read(path).with_context(|| format!("reading {}", path.display()))?
    } else {
        let mut packed = path.as_os_str().to_owned();
        packed.push(".gz");
        let packed = Path::new(&packed);
        if !packed.exists() {
            return Ok(None);
        }
        unpack(packed)?
    };
    let whole = bytes
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |end| end + 1);
    bytes.truncate(whole);
    Ok(Some(bytes))
}

/// [`whole_lines`] read piece by piece: a long run's files need not lie in memory beside what is made of them.
pub(super) fn whole_lines_of(path: &Path) -> Result<Option<Box<dyn Read>>> {
    if !path.exists() {
        let bytes = whole_lines(path)?;
        return Ok(bytes.map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read>));
    }
    let reading = || format!("reading {}", path.display());
    let mut file = File::open(path).with_context(reading)?;
    let whole = end_of_lines(&mut file).with_context(reading)?;
    file.rewind().with_context(reading)?;
    Ok(Some(Box::new(file.take(whole))))
}

/// Bytes of a file up to its last line end.
fn end_of_lines(file: &mut File) -> std::io::Result<u64> {
    const PIECE: u64 = 64 * 1024;
    let mut end = file.metadata()?.len();
    let mut piece = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(PIECE);
        file.seek(SeekFrom::Start(start))?;
        piece.clear();
        Read::by_ref(file)
            .take(end - start)
            .read_to_end(&mut piece)?;
        if let Some(at) = piece.iter().rposition(|&byte| byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// A published run's large files are compressed.
fn unpack(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).with_context(|| format!("reading {}", path.display()))?;
    let mut bytes = Vec::new();
    let read = flate2::read::GzDecoder::new(file)
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("unpacking {}", path.display()))?;
    if read as u64 > LARGEST {
        bail!("{} unpacks to more than 4 GiB", path.display());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_read_piece_by_piece_are_those_of_the_whole_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        let long = "y".repeat(200_000);
        for text in [
            "",
            "no end",
            "a\n",
            "a\nb",
            "a\nb\n\n",
            &long,
            &format!("a\n{long}"),
            &format!("{long}\nb"),
        ] {
            std::fs::write(&path, text).unwrap();
            let mut read = String::new();
            let mut lines = whole_lines_of(&path).unwrap().unwrap();
            lines.read_to_string(&mut read).unwrap();
            let whole = whole_lines(&path).unwrap().unwrap();
            assert_eq!(read.as_bytes(), whole, "{} bytes", text.len());
        }
        assert!(
            whole_lines_of(&dir.path().join("absent"))
                .unwrap()
                .is_none()
        );
    }
}
