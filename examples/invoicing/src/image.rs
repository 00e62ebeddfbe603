//! The application image: the texts that a release brings along, many small pieces of heap, replaced as a whole while the
//! service runs. Which thread builds one and which drops it is whichever serves the request: that is what an allocator
//! with an arena for each thread has to cope with.

use std::fmt::Write;
use std::sync::{Arc, PoisonError, RwLock};

use crate::arguments::Size;

/// One release's texts.
#[derive(Debug)]
pub struct Image {
    release: u64,
    phrases: Vec<Box<str>>,
}

impl Image {
    /// Texts of `bytes` bytes in all, in pieces of about 40 to 230.
    #[must_use]
    pub fn build(release: u64, bytes: usize) -> Self {
        let mut phrases = Vec::new();
        let mut held = 0;
        while held < bytes {
            let place = phrases.len();
            let mut phrase = String::new();
            // Writing to a String cannot fail.
            let _ = write!(
                phrase,
                "phrase {place} of release {release}: please find enclosed"
            );
            for _ in 0..place % 20 {
                phrase.push_str(" and also");
            }
            held += phrase.len();
            phrases.push(phrase.into_boxed_str());
        }
        Self { release, phrases }
    }

    /// Which release it is; the first is 1.
    #[must_use]
    pub fn release(&self) -> u64 {
        self.release
    }

    /// A phrase for a number; the same for the same number. Empty when the image is.
    #[must_use]
    pub fn phrase(&self, number: u64) -> &str {
        let count = self.phrases.len() as u64;
        number
            .checked_rem(count)
            .and_then(|place| usize::try_from(place).ok())
            .and_then(|place| self.phrases.get(place))
            .map_or("", |phrase| phrase)
    }

    /// Pieces held.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.phrases.len()
    }
}

/// Where the current image stands.
#[derive(Debug)]
pub struct Shelf {
    size: Size,
    current: RwLock<Arc<Image>>,
}

impl Shelf {
    /// With the first release on it.
    #[must_use]
    pub fn new(size: Size) -> Self {
        Self {
            size,
            current: RwLock::new(Arc::new(Image::build(1, size.0))),
        }
    }

    /// The image of the moment.
    #[must_use]
    pub fn current(&self) -> Arc<Image> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Builds the next release on this thread, puts it in place, and drops the old one once its last user lets go.
    #[must_use]
    pub fn replace(&self) -> Arc<Image> {
        let mut next = Arc::new(Image::build(self.current().release + 1, self.size.0));
        let placed = Arc::clone(&next);
        std::mem::swap(
            &mut *self.current.write().unwrap_or_else(PoisonError::into_inner),
            &mut next,
        );
        placed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_the_size_asked_for_in_small_pieces() {
        let image = Image::build(3, 1 << 20);
        let bytes: usize = image.phrases.iter().map(|phrase| phrase.len()).sum();
        assert!((1 << 20..(1 << 20) + 300).contains(&bytes), "{bytes}");
        assert!(image.pieces() > 5_000);
        assert_eq!(image.phrase(1), image.phrase(1 + image.pieces() as u64));
    }

    #[test]
    fn replacing_gives_the_next_release_and_frees_the_old() {
        let shelf = Shelf::new(Size(1000));
        let old = Arc::downgrade(&shelf.current());
        assert_eq!(shelf.replace().release(), 2);
        assert_eq!(shelf.current().release(), 2);
        assert!(old.upgrade().is_none());
    }
}
