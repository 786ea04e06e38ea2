//! `kubectl` and `etcdctl`: programs that are run to their end.

use serde_json::Value;

use super::api::{pattern, templated, text};
use crate::pattern::Pattern;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::template;
use crate::yaml::Node;

words! {
    /// A program that a scenario can have run.
    Tool {
        /// Asks the control plane, as the administrator.
        Kubectl "kubectl";
        /// Asks the etcd in which the control plane keeps its state.
        Etcdctl "etcdctl";
    }
}

/// Runs a program to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRun {
    /// Arguments after the program's name.
    pub args: Vec<String>,
    /// Text, or an object that is written as JSON.
    pub stdin: Option<Value>,
    /// The exit code that is right.
    pub exit_code: i32,
    /// What standard output must look like; a plain text must be contained in it.
    pub stdout: Option<Pattern>,
    /// What standard error must look like; a plain text must be contained in it.
    pub stderr: Option<Pattern>,
}

const STDIN: Field =
    Field::optional("stdin", FieldType::Any, "A text, or an object that is written as JSON.");
const EXIT_CODE: Field =
    Field::optional("exitCode", FieldType::Whole { min: 0, max: 255 }, "The exit code that is right.")
        .usually("0");
const STDOUT: Field = Field::optional(
    "stdout",
    FieldType::TextOrPattern,
    "A text that standard output contains, or a pattern.",
);
const STDERR: Field =
    Field::optional("stderr", FieldType::TextOrPattern, "A text that standard error contains, or a pattern.");

pub(crate) static KUBECTL: Shape = Shape::new(
    "kubectl",
    "Runs kubectl to its end.",
    &[
        Field::required("args", FieldType::List(&FieldType::Text), "Arguments after `kubectl`."),
        STDIN,
        EXIT_CODE,
        STDOUT,
        STDERR,
    ],
);

pub(crate) static ETCDCTL: Shape = Shape::new(
    "etcdctl",
    "Runs etcdctl to its end, on the etcd in which the control plane keeps its state.",
    &[
        Field::required("args", FieldType::List(&FieldType::Text), "Arguments after `etcdctl`."),
        STDIN,
        EXIT_CODE,
        STDOUT,
        STDERR,
    ],
);

impl Tool {
    fn shape(self) -> &'static Shape {
        match self {
            Tool::Kubectl => &KUBECTL,
            Tool::Etcdctl => &ETCDCTL,
        }
    }

    /// Arguments such as it takes, for remedies.
    fn example(self) -> &'static str {
        match self {
            Tool::Kubectl => "[get, pods]",
            Tool::Etcdctl => "[get, /registry/pods/default/lamp]",
        }
    }
}

pub(crate) fn kubectl(context: &mut Context<'_, '_>, node: &Node) -> Option<ToolRun> {
    read(context, node, Tool::Kubectl)
}

pub(crate) fn etcdctl(context: &mut Context<'_, '_>, node: &Node) -> Option<ToolRun> {
    read(context, node, Tool::Etcdctl)
}

fn read(context: &mut Context<'_, '_>, node: &Node, tool: Tool) -> Option<ToolRun> {
    let (name, example) = (tool.name(), tool.example());
    let fields = context.reader.open(node, tool.shape())?;
    let args_node = fields.get("args")?;
    if let Some(words) = args_node.as_text().filter(|text| text.contains(char::is_whitespace)) {
        let words: Vec<&str> = words.split_whitespace().filter(|word| *word != name).collect();
        let message =
            "`args` are a list, each word an item of its own: there is no shell that would part them";
        context.reader.wrong(&args_node.span, message, format!("write [{}]", words.join(", ")));
        return None;
    }
    let items = context.reader.some_list(
        args_node,
        &format!("{name} without arguments"),
        &format!("write for example {example}"),
    )?;
    if let Some(first) = items.first().filter(|first| first.as_text() == Some(name)) {
        let message = format!("`args` are what stands after `{name}`, which is called by itself");
        context.reader.wrong(&first.span, message, "leave out the first word");
    }
    let args: Vec<Option<String>> = items.iter().map(|item| argument(context, item)).collect();
    let exit_code = match fields.get("exitCode") {
        Some(node) => context.reader.whole(node, 0..=255).and_then(|code| i32::try_from(code).ok())?,
        None => 0,
    };
    let mut output = |key| fields.get(key).map(|node| pattern(context, node));
    let stdout = output("stdout").map_or(Some(None), |read| read.map(Some));
    let stderr = output("stderr").map_or(Some(None), |read| read.map(Some));
    Some(ToolRun {
        args: args.into_iter().collect::<Option<_>>()?,
        stdin: fields.get("stdin").map(|node| templated(context, node)),
        exit_code,
        stdout: stdout?,
        stderr: stderr?,
    })
}

/// An argument. The braces of a template that the program itself fills in are its own: `{{.kind}}`.
fn argument(context: &mut Context<'_, '_>, node: &Node) -> Option<String> {
    if !node.as_text().is_some_and(|text| text.contains("{{")) {
        return text(context, node);
    }
    let text = context.reader.text(node)?;
    context.check_plain(&node.span, &text, false);
    context.check_names(&node.span, &template::names(&text));
    Some(text)
}
