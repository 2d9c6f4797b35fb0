//! The standard output: a table for people at the end, or delimited text or JSON lines as rows come.

mod table;

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use dfc_batch::{Batch, RowError};
use dfc_ir::Schema;
use dfc_ir::plan::SinkSpec;

use crate::csv::{CsvEncoder, CsvStyle};
use crate::files::io_error;
use crate::jsonl::JsonEncoder;
use crate::options::OptionReader;
use crate::{ConnectError, Encoded, Encoder, OpenContext, Sink, SinkSummary};
use table::Table;

/// What rows look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Table,
    Csv,
    Jsonl,
}

/// Opens it.
pub(crate) fn open_sink(spec: &SinkSpec, schema: &Schema, _cx: &OpenContext) -> Result<Box<dyn Sink>, ConnectError> {
    Ok(Box::new(open_on(spec, schema, Box::new(io::stdout()))?))
}

fn open_on(spec: &SinkSpec, schema: &Schema, out: Box<dyn Write + Send>) -> Result<Print, ConnectError> {
    let options = OptionReader::new("print", &spec.options);
    let limit = options.count("rows")?;
    let look = options.choice("format", &[("table", Look::Table), ("csv", Look::Csv), ("jsonl", Look::Jsonl)])?;
    let schema = Arc::new(schema.clone());
    let form = match look {
        Look::Table => Form::Table(Table::new(&schema)),
        Look::Csv => {
            let style = Arc::new(CsvStyle::read(&OptionReader::new("print", &Default::default()))?);
            Form::Stream {
                header: Some(style.header_line(&schema)?),
                encoder: Box::new(CsvEncoder::new(style, schema)),
            }
        }
        Look::Jsonl => Form::Stream { header: None, encoder: Box::new(JsonEncoder::new(schema)) },
    };
    Ok(Print { state: Mutex::new(State { form, out, limit, rows: 0, bytes: 0 }) })
}

struct Print {
    state: Mutex<State>,
}

struct State {
    form: Form,
    out: Box<dyn Write + Send>,
    limit: Option<u64>,
    rows: u64,
    bytes: u64,
}

enum Form {
    Table(Table),
    Stream {
        /// Written before the first row.
        header: Option<Vec<u8>>,
        encoder: Box<dyn Encoder>,
    },
}

/// Which rows are shown is known only where they are written, one batch after the other.
struct PassOn;

impl Encoder for PassOn {
    fn encode(&mut self, batch: Batch, _errors: &mut Vec<RowError>) -> Result<(Encoded, u64), ConnectError> {
        let rows = batch.rows as u64;
        Ok((Encoded::Rows(batch), rows))
    }
}

impl State {
    fn put(&mut self, bytes: &[u8]) -> Result<(), ConnectError> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(|e| io_error("write", "stdout", &e))
    }

    /// The rows of a batch that are still to be shown.
    fn shown(&self, batch: Batch) -> Batch {
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.rows));
        let rows = usize::try_from(left).unwrap_or(usize::MAX).min(batch.rows);
        let columns = batch.columns.iter().map(|c| c.slice(0, rows)).collect();
        Batch { columns, rows, ..batch }
    }

    fn put_header(&mut self) -> Result<(), ConnectError> {
        let header = match &mut self.form {
            Form::Stream { header, .. } => header.take(),
            Form::Table(_) => None,
        };
        header.map_or(Ok(()), |header| self.put(&header))
    }
}

impl Sink for Print {
    fn encoder(&self, _task: usize) -> Result<Box<dyn Encoder>, ConnectError> {
        Ok(Box::new(PassOn))
    }

    fn write(&self, encoded: Encoded, rows: u64) -> Result<(), ConnectError> {
        // A panic while writing ends the job: nothing is finished after it.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.put_header()?;
        let bytes = match encoded {
            Encoded::Bytes(bytes) => bytes,
            Encoded::Rows(batch) => {
                let batch = state.shown(batch);
                match &mut state.form {
                    Form::Table(table) => {
                        table.add(&batch);
                        Vec::new()
                    }
                    Form::Stream { encoder, .. } => match encoder.encode(batch, &mut Vec::new())?.0 {
                        Encoded::Bytes(bytes) => bytes,
                        Encoded::Rows(_) | Encoded::Parts(_) => Vec::new(),
                    },
                }
            }
            Encoded::Parts(_) => Vec::new(),
        };
        state.rows += rows;
        if bytes.is_empty() { Ok(()) } else { state.put(&bytes) }
    }

    fn finish(&self) -> Result<SinkSummary, ConnectError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.put_header()?;
        if let Form::Table(table) = &mut state.form {
            let mut text = table.render();
            let more = state.limit.map_or(0, |limit| state.rows.saturating_sub(limit));
            if more > 0 {
                text += &format!("… {more} more row{}\n", if more == 1 { "" } else { "s" });
            }
            state.put(text.as_bytes())?;
        }
        Ok(SinkSummary { target: Some("stdout".into()), rows: state.rows, bytes: state.bytes })
    }

    fn abort(&self) {}

    fn epochs(&self) -> Result<(), String> {
        Err("rows that were shown can't be taken back".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use dfc_ir::Value;
    use dfc_ir::plan::OptionValue;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(buf);
            Ok(buf.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printed(pairs: &[(&str, OptionValue)]) -> String {
        let schema = schema("id: int64; 名: string?; price: decimal(6,2)");
        let rows = [
            vec![Value::Int(1), Value::str("a\nb"), Value::Decimal(150)],
            vec![Value::Int(20), Value::Null, Value::Decimal(-1)],
            vec![Value::Int(300), Value::str("订单"), Value::Decimal(99_999)],
        ];
        let screen = Screen::default();
        let spec = SinkSpec { connector: "print".into(), options: options(pairs) };
        let sink = open_on(&spec, &schema, Box::new(screen.clone())).unwrap();
        put(&sink, vec![batch(&schema, &rows[..2]), batch(&schema, &rows[2..])]).unwrap();
        let summary = sink.finish().unwrap();
        let text = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
        assert_eq!((summary.target.as_deref(), summary.rows, summary.bytes), (Some("stdout"), 3, text.len() as u64));
        text
    }

    #[test]
    fn a_table_is_aligned_and_numbers_stand_right() {
        let table = " id  名     price\n---  ----  ------\n  1  a\\nb    1.50\n 20  null   -0.01\n300  订单  999.99\n";
        assert_eq!(printed(&[]), table);
        assert!(printed(&[("rows", int(1))]).ends_with(" 1  a\\nb   1.50\n… 2 more rows\n"));
    }

    #[test]
    fn csv_and_jsonl_stream() {
        assert_eq!(printed(&[("format", name("csv"))]), "id,名,price\n1,\"a\nb\",1.50\n20,,-0.01\n300,订单,999.99\n");
        let pairs = [("format", name("jsonl")), ("rows", int(1))];
        assert_eq!(printed(&pairs), "{\"id\":1,\"名\":\"a\\nb\",\"price\":1.50}\n");
    }
}
