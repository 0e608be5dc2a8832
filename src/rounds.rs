//! Reviews that follow one another.

pub mod advice;
pub mod compare;
pub mod recall;
pub mod region;
pub mod response;
pub mod words;
