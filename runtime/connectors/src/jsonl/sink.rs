//! The JSON lines sink: one object a line, keys are the fields' outside names, nulls are written.

use std::sync::Arc;

use arrow_array::Array;
use dfc_batch::{Batch, RowError};
use dfc_ir::plan::SinkSpec;
use dfc_ir::{Schema, Type};

use crate::files::{COMPRESSIONS, FolderSink, MODES, OutputOptions, refuse_folder_options, text_folder, text_parts};
use crate::options::OptionReader;
use crate::text::format::writer;
use crate::text::sink::TextSink;
use crate::{ConnectError, Encoded, Encoder, OpenContext, Sink};

/// Opens a JSON lines sink.
pub(crate) fn open_sink(spec: &SinkSpec, schema: &Schema, cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    let options = OptionReader::new("jsonl", &spec.options);
    let output = OutputOptions {
        path: options.required("path")?.to_string(),
        mode: options.choice("mode", &MODES)?,
        compression: options.choice("compression", &COMPRESSIONS)?,
    };
    if output.path.ends_with('/') {
        let (folder, by, rest) = text_folder(&options, &output, "jsonl", schema)?;
        let rest = Arc::new(rest);
        let make = move || {
            let encoder = Box::new(JsonEncoder::new(rest.clone()));
            match &by {
                Some(by) => by.encoder(encoder),
                None => encoder as Box<dyn Encoder>,
            }
        };
        let parts = text_parts(&output.path, Vec::new(), output.compression);
        return Ok(Box::new(FolderSink::open(folder, cx, Box::new(make), parts)?));
    }
    refuse_folder_options(&options, &output.path)?;
    let schema = Arc::new(schema.clone());
    let make = move || Box::new(JsonEncoder::new(schema.clone())) as Box<dyn Encoder>;
    Ok(Box::new(TextSink::open(&output, cx, Box::new(|_| Ok(Vec::new())), Box::new(make))?))
}

/// Turns batches into lines.
pub(crate) struct JsonEncoder {
    schema: Arc<Schema>,
    /// Each field's key with what stands before its value: `{"a":`, `,"b":`.
    keys: Vec<Vec<u8>>,
}

impl JsonEncoder {
    /// For rows of these fields.
    pub(crate) fn new(schema: Arc<Schema>) -> Self {
        let key = |(i, name): (usize, &str)| {
            let mut key = vec![if i == 0 { b'{' } else { b',' }];
            string(&mut key, name.as_bytes());
            key.push(b':');
            key
        };
        let keys = schema.fields.iter().map(|f| f.external_name()).enumerate().map(key).collect();
        JsonEncoder { schema, keys }
    }
}

impl Encoder for JsonEncoder {
    fn encode(&mut self, batch: Batch, _errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let columns: Vec<_> = self
            .schema
            .fields
            .iter()
            .zip(&batch.columns)
            .map(|(field, array)| (form(&field.ty.ty), array.nulls(), writer(array, &field.ty.ty)))
            .collect();
        let mut out = Vec::with_capacity(batch.rows * self.keys.iter().map(|k| k.len() + 8).sum::<usize>());
        let mut scratch = Vec::new();
        for row in 0..batch.rows {
            for (key, (form, nulls, write)) in self.keys.iter().zip(&columns) {
                out.extend_from_slice(key);
                if nulls.is_some_and(|n| n.is_null(row)) {
                    out.extend_from_slice(b"null");
                    continue;
                }
                match form {
                    Form::Bare => write(row, &mut out),
                    Form::Text => {
                        scratch.clear();
                        write(row, &mut scratch);
                        string(&mut out, &scratch);
                    }
                    Form::Json => {
                        let start = out.len();
                        write(row, &mut out);
                        // JSON has line breaks only between its words, where a blank does as well.
                        out[start..].iter_mut().filter(|b| matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
                    }
                }
            }
            out.extend_from_slice(if self.keys.is_empty() { b"{}\n" } else { b"}\n" });
        }
        Ok((Encoded::Bytes(out), batch.rows as u64))
    }
}

/// How a type's text stands in JSON.
#[derive(Clone, Copy)]
enum Form {
    Bare,
    Text,
    Json,
}

fn form(ty: &Type) -> Form {
    match ty {
        Type::Bool => Form::Bare,
        ty if ty.is_numeric() => Form::Bare,
        Type::Json | Type::List(_) | Type::Record(_) => Form::Json,
        _ => Form::Text,
    }
}

/// Appends a text as a JSON string.
fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
