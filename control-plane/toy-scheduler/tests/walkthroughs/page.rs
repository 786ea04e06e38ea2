//! A page's `console` blocks as steps.

/// A command and what it prints.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Where the command begins in the page, from 1.
    pub line: usize,
    /// The command, of more than one line where a line ends with a backslash or a here-document follows.
    pub command: String,
    /// What the page shows below it.
    pub output: Vec<String>,
}

/// The steps of `page`, in order. A command begins with `$ `; what is not part of a command is what the last one prints.
pub fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    let (mut inside, mut goes_on) = (false, Until::Done);
    for (number, line) in page.lines().enumerate() {
        match line {
            "```console" => inside = true,
            "```" => {
                assert!(matches!(goes_on, Until::Done), "line {}: a command does not end", number + 1);
                inside = false;
            }
            _ if !inside => {}
            _ => match (&goes_on, line.strip_prefix("$ "), steps.last_mut()) {
                (Until::Done, Some(command), _) => {
                    goes_on = Until::of(command);
                    steps.push(Step { line: number + 1, command: command.to_owned(), output: Vec::new() });
                }
                (Until::Done, None, Some(step)) => step.output.push(line.to_owned()),
                (Until::Done, None, None) => panic!("line {}: a block begins without a command", number + 1),
                (until, _, step) => {
                    let step = step.expect("a command that goes on began");
                    step.command.push('\n');
                    step.command.push_str(line);
                    goes_on = until.after(line);
                }
            },
        }
    }
    steps
}

/// Where a command ends that goes on in the next line.
enum Until {
    Done,
    NextLine,
    Word(String),
}

impl Until {
    fn of(line: &str) -> Self {
        match line.split_once("<<'") {
            Some((_, rest)) => Self::Word(rest.split('\'').next().unwrap_or_default().to_owned()),
            None if line.ends_with('\\') => Self::NextLine,
            None => Self::Done,
        }
    }

    fn after(&self, line: &str) -> Self {
        match self {
            Self::Word(word) if line != word => Self::Word(word.clone()),
            Self::Word(_) | Self::Done => Self::Done,
            Self::NextLine => Self::of(line),
        }
    }
}

#[test]
fn commands_and_what_they_print_are_told_apart() {
    let page = "text\n```sh\n$ not this\n```\n```console\n$ one\nprinted\n$ two \\\n    on\n$ three <<'EOF'\n$ no command\nEOF\n\
                done\n```\nmore\n";
    let step = |line, command: &str, output: &[&str]| Step {
        line,
        command: command.into(),
        output: output.iter().map(|line| (*line).to_owned()).collect(),
    };
    let expected = [
        step(6, "one", &["printed"]),
        step(8, "two \\\n    on", &[]),
        step(10, "three <<'EOF'\n$ no command\nEOF", &["done"]),
    ];
    assert_eq!(steps(page), expected);
}
