//! The colours of the output, each with one meaning.

use std::fmt::{self, Display};

use anstyle::{AnsiColor, Style};

/// Whether text gets colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Palette {
    Plain,
    Coloured,
}

impl Palette {
    pub(crate) fn error<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub(crate) fn warning<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// Colours the name of a server or a tool, or a path.
    pub(crate) fn name<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Cyan.on_default(), text)
    }

    /// Colours a command line, or the report of a success.
    pub(crate) fn command<T: Display>(self, text: T) -> Painted<T> {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    pub(crate) fn aside<T: Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().dimmed(), text)
    }

    pub(crate) fn heading<T: Display>(self, text: T) -> Painted<T> {
        self.paint(Style::new().bold(), text)
    }

    fn paint<T: Display>(self, style: Style, text: T) -> Painted<T> {
        let style = match self {
            Palette::Plain => Style::new(),
            Palette::Coloured => style,
        };
        Painted { style, text }
    }
}

/// A text with its colour.
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{:#}", self.style, self.text, self.style)
    }
}
