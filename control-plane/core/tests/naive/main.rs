//! A second scheduler, written from the catalogue alone by someone who had not read the first: plain loops over JSON, no
//! caches, numbers as a child adds them. Random clusters must look the same to both. It is slow and serves only as a judge.

mod clusters;
mod compare;
mod digits;
mod kube32;
mod quantity;
