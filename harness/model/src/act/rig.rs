//! Reading of acts on the rig, and of the acts that only let time pass or run a command.

use super::api::{pattern, templated, text};
use super::{Advance, ControlPlaneAct, Kubectl, Link, LinkAct, LinkChange, Power, PowerAct, Wait};
use crate::reader::word;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::{Kind, Node};

const BOARD: Field = Field::required("board", FieldType::Text, "The board: a, b, c ….").such_as("a");

pub(crate) static POWER: Shape = Shape::new(
    "power",
    "Switches a board's power, or stops its processor.",
    &[
        BOARD,
        Field::required(
            "do",
            FieldType::Word(&["cut", "restore", "cycle", "hang", "resume"]),
            "What is done.",
        ),
    ],
);

pub(crate) static LINK: Shape = Shape::new(
    "link",
    "Cuts, delays, thins or heals a board's link.",
    &[
        BOARD,
        Field::required("do", FieldType::Word(&["cut", "heal", "delay", "loss"]), "What is done."),
        Field::optional("by", FieldType::Duration, "With delay: how much longer a packet takes, one way."),
        Field::optional(
            "percent",
            FieldType::Whole { min: 0, max: 100 },
            "With loss: how many percent of the packets are lost.",
        ),
    ],
);

pub(crate) static CONTROL_PLANE: Shape = Shape::new(
    "controlPlane",
    "Stops or starts the control plane.",
    &[Field::required("do", FieldType::Word(&["restart", "stop", "kill", "start"]), "What is done.")],
);

pub(crate) static KUBECTL: Shape = Shape::new(
    "kubectl",
    "Runs kubectl to its end.",
    &[
        Field::required("args", FieldType::List(&FieldType::Text), "Arguments after `kubectl`."),
        Field::optional("stdin", FieldType::Any, "A text, or an object that is written as JSON."),
        Field::optional("exitCode", FieldType::Whole { min: 0, max: 255 }, "The exit code that is right.")
            .usually("0"),
        Field::optional(
            "stdout",
            FieldType::TextOrPattern,
            "A text that standard output contains, or a pattern.",
        ),
        Field::optional(
            "stderr",
            FieldType::TextOrPattern,
            "A text that standard error contains, or a pattern.",
        ),
    ],
);

pub(crate) fn power(context: &mut Context<'_, '_>, node: &Node) -> Option<Power> {
    let fields = context.reader.open(node, &POWER)?;
    let board = fields.get("board").and_then(|node| board(context, node));
    let act = word(context.reader, fields.get("do")?, &PowerAct::ALL, PowerAct::name);
    Some(Power { board: board?, act: act? })
}

pub(crate) fn link(context: &mut Context<'_, '_>, node: &Node) -> Option<Link> {
    let fields = context.reader.open(node, &LINK)?;
    let board = fields.get("board").and_then(|node| board(context, node));
    let act = word(context.reader, fields.get("do")?, &LinkAct::ALL, LinkAct::name)?;
    for (key, of) in [("by", LinkAct::Delay), ("percent", LinkAct::Loss)] {
        match fields.get(key) {
            Some(node) if act != of => {
                let message = format!("`{key}` says nothing about {}", act.name());
                context.reader.wrong(
                    &node.span,
                    message,
                    format!("leave it out, or write do: {}", of.name()),
                );
            }
            None if act == of => {
                let example = if act == LinkAct::Delay { "by: 200ms" } else { "percent: 20" };
                let message = format!("{} needs the key `{key}`", act.name());
                context.reader.wrong(&node.span, message, format!("write for example {example}"));
            }
            Some(_) | None => {}
        }
    }
    let change = match act {
        LinkAct::Cut => LinkChange::Cut,
        LinkAct::Heal => LinkChange::Heal,
        LinkAct::Delay => LinkChange::Delay(context.length(fields.get("by")?)?),
        LinkAct::Loss => {
            let percent = context.reader.whole(fields.get("percent")?, 0..=100)?;
            LinkChange::Loss(u8::try_from(percent).ok()?)
        }
    };
    Some(Link { board: board?, change })
}

pub(crate) fn control_plane(context: &mut Context<'_, '_>, node: &Node) -> Option<ControlPlaneAct> {
    let fields = context.reader.open(node, &CONTROL_PLANE)?;
    word(context.reader, fields.get("do")?, &ControlPlaneAct::ALL, ControlPlaneAct::name)
}

pub(crate) fn kubectl(context: &mut Context<'_, '_>, node: &Node) -> Option<Kubectl> {
    let fields = context.reader.open(node, &KUBECTL)?;
    let args_node = fields.get("args")?;
    let items = context.reader.list(args_node);
    if items.is_empty() {
        context.reader.wrong(&args_node.span, "kubectl without arguments", "write for example [get, pods]");
    }
    let args: Vec<Option<String>> = items.iter().map(|item| text(context, item)).collect();
    let exit_code = match fields.get("exitCode") {
        Some(node) => context.reader.whole(node, 0..=255).and_then(|code| i32::try_from(code).ok())?,
        None => 0,
    };
    let mut output = |key| fields.get(key).map(|node| pattern(context, node));
    let stdout = output("stdout").map_or(Some(None), |read| read.map(Some));
    let stderr = output("stderr").map_or(Some(None), |read| read.map(Some));
    Some(Kubectl {
        args: args.into_iter().collect::<Option<_>>()?,
        stdin: fields.get("stdin").map(|node| templated(context, node)),
        exit_code,
        stdout: stdout?,
        stderr: stderr?,
    })
}

pub(crate) fn wait(context: &mut Context<'_, '_>, node: &Node) -> Option<Wait> {
    if let Kind::Map(_) = &node.kind {
        context.reader.wrong(
            &node.span,
            "wait takes an instant or a duration, not a mapping",
            "write wait: 3s, or wait: outage + 3s",
        );
        return None;
    }
    Some(Wait { until: context.instant(node)? })
}

pub(crate) fn advance(context: &mut Context<'_, '_>, node: &Node) -> Option<Advance> {
    if let Kind::Map(_) = &node.kind {
        let remedy = "write advance: 1h, or advance: 2 * leaseDuration";
        context.reader.wrong(&node.span, "advance takes a duration, not a mapping", remedy);
        return None;
    }
    Some(Advance { by: context.length(node)? })
}

/// A board of the trial.
pub(crate) fn board(context: &mut Context<'_, '_>, node: &Node) -> Option<String> {
    let board = context.reader.text(node)?;
    context.check_board(&node.span, &board);
    Some(board)
}
