//! What all file connectors share: finding files, opening them through decompression and decoding, and writing them
//! so that nothing is visible before it is whole. It may not know what the files contain.

mod input;
mod output;
mod paths;
mod waiting;

pub(crate) use input::{Compression, Encoding, Input, encode, open_input};
pub(crate) use output::{Mode, Output, OutputOptions};
pub(crate) use paths::{InputFile, distance, expand, io_error};

/// The values of a `compression` parameter.
pub(crate) const COMPRESSIONS: [(&str, Compression); 4] = [
    ("auto", Compression::Auto),
    ("none", Compression::None),
    ("gzip", Compression::Gzip),
    ("zstd", Compression::Zstd),
];

/// The values of an `encoding` parameter.
pub(crate) const ENCODINGS: [(&str, Encoding); 3] =
    [("utf8", Encoding::Utf8), ("gbk", Encoding::Gbk), ("latin1", Encoding::Latin1)];

/// The values of a `mode` parameter.
pub(crate) const MODES: [(&str, Mode); 3] =
    [("overwrite", Mode::Overwrite), ("append", Mode::Append), ("fail", Mode::Fail)];
