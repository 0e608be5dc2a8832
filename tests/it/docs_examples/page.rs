//! Parses the fenced blocks of a Markdown page, with the HTML comment before each.

/// A fenced block of a page.
#[derive(Debug)]
pub struct Block {
    /// Index of the line that opens the fence.
    pub line: usize,
    pub language: String,
    /// White space before the fence, as in a list item.
    pub indent: String,
    pub mark: Mark,
    /// Lines between the fences, without the indentation.
    pub body: Vec<String>,
}

/// The comment before a block, which states how it is tested.
#[derive(Debug)]
pub enum Mark {
    None,
    /// `<!-- not executed: REASON -->`
    NotExecuted(String),
    /// `<!-- example: NAME; exit: 1; through: TEXT; output not shown -->`
    Example(Example),
    /// A comment with an unknown attribute.
    Invalid(String),
}

/// The attributes of an executed block.
#[derive(Debug, Default)]
pub struct Example {
    /// Name of the fixture, or `continued` for the state after the previous example of the page.
    pub fixture: String,
    /// Exit code of the last command. All others must exit with 0.
    pub exit: i32,
    /// The page shows the output up to the first line with this text.
    pub through: Option<String>,
    /// The page shows the commands only.
    pub is_hidden: bool,
}

/// A command of a block and the output that the page shows.
#[derive(Debug)]
pub struct Command {
    /// Lines of the command on the page.
    pub lines: Vec<String>,
    /// The command for the shell.
    pub text: String,
    pub output: Vec<String>,
}

/// Returns the fenced blocks of a page in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let lines: Vec<&str> = page.lines().collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let start = lines[at].trim_start();
        let ticks = start.len() - start.trim_start_matches('`').len();
        if ticks < 3 {
            at += 1;
            continue;
        }
        let indent = &lines[at][..lines[at].len() - start.len()];
        let fence = &start[..ticks];
        let length = lines[at + 1..]
            .iter()
            .position(|l| l.trim() == fence)
            .unwrap();
        let body = lines[at + 1..at + 1 + length].iter();
        blocks.push(Block {
            line: at,
            language: start[ticks..].trim().to_owned(),
            indent: indent.to_owned(),
            mark: at
                .checked_sub(1)
                .map_or(Mark::None, |above| mark(lines[above])),
            body: body
                .map(|l| l.strip_prefix(indent).unwrap_or(l).to_owned())
                .collect(),
        });
        at += length + 2;
    }
    blocks
}

fn mark(line: &str) -> Mark {
    let Some(comment) = line
        .trim()
        .strip_prefix("<!-- ")
        .and_then(|l| l.strip_suffix(" -->"))
    else {
        return Mark::None;
    };
    if let Some(reason) = comment.strip_prefix("not executed: ") {
        return Mark::NotExecuted(reason.to_owned());
    }
    let Some(attributes) = comment.strip_prefix("example: ") else {
        return Mark::None;
    };
    let mut attributes = attributes.split("; ");
    let fixture = attributes.next().unwrap_or_default().to_owned();
    let mut example = Example {
        fixture,
        ..Example::default()
    };
    for attribute in attributes {
        match attribute.split_once(": ") {
            Some(("exit", code)) => example.exit = code.parse().unwrap_or(-1),
            Some(("through", text)) => example.through = Some(text.to_owned()),
            None if attribute == "output not shown" => example.is_hidden = true,
            _ => return Mark::Invalid(attribute.to_owned()),
        }
    }
    Mark::Example(example)
}

/// Splits a block into commands. A command starts with `$ ` and continues while its lines end with
/// `\` or `&&`.
pub fn commands(body: &[String]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut is_open = false;
    for line in body {
        let first = line.strip_prefix("$ ");
        if let (Some(text), false) = (first, is_open) {
            commands.push(Command {
                lines: vec![line.clone()],
                text: text.to_owned(),
                output: Vec::new(),
            });
        } else {
            let command = commands.last_mut().unwrap();
            if is_open {
                command.lines.push(line.clone());
                command.text = format!("{}\n{line}", command.text);
            } else {
                command.output.push(line.clone());
            }
        }
        is_open = (first.is_some() || is_open) && (line.ends_with('\\') || line.ends_with("&&"));
    }
    commands
}
