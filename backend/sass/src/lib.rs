//! The machine code: one table of encodable forms for sm_75 to sm_121, and four walkers over it.
//!
//! A [`Form`] is one row; an [`Inst`] is a form with a value for each of its fields and a control word.
//! [`encode`] and [`decode`] are inverse; [`print()`] gives NVIDIA's text and [`parse`] reads it back.
//! The crate has no dependencies.
