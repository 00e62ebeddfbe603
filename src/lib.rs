//! ceteris
