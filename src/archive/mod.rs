//! The archive: which runs were kept, whether a run's figures still follow from its files, and how it is published.
//!
//! It judges by no rules of its own: judging and rendering are the analysis' and the report's, done again and compared.
//! Nothing that was measured is ever changed or deleted here.

mod checksums;
mod dictionary;
mod judge;
mod list;
mod note;
mod null;
mod publish;
mod redact;
mod rendered;
mod verify;

pub use checksums::seal;
pub use judge::{analyze, judged, report};
pub use list::{Kept, kept_runs, list};
pub use note::note;
pub use publish::{Published, publish};
pub use redact::Redaction;
pub use verify::{Difference, Verification, verify};
