//! The rows of the report; the only place that prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is for people")]

/// The rows of the report.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    /// Adds a row: what was measured, our figure, the comparison from the same run, and the target.
    pub(crate) fn row(&mut self, what: &str, ours: String, floor: String, bar: &str) {
        eprintln!("{what}: {ours} ({floor})");
        self.rows.push([what.to_owned(), ours, floor, bar.to_owned()]);
    }

    pub(crate) fn print(&self) {
        let head = ["measured", "switchboard", "floor or ratio", "first bar"].map(str::to_owned);
        println!("| {} |", head.join(" | "));
        println!("|---|---|---|---|");
        for row in &self.rows {
            println!("| {} |", row.join(" | "));
        }
    }
}

pub(crate) fn complain(message: &str) {
    eprintln!("{message}");
}
