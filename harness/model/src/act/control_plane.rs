//! `controlPlane`: what is done to the control plane.

use crate::reader::word;
use crate::shape::{Field, FieldType, Shape};
use crate::step::Context;
use crate::yaml::Node;

super::words! {
    /// What can be done to the control plane.
    ControlPlaneAct {
        /// An orderly stop and a start.
        Restart "restart";
        /// An orderly stop.
        Stop "stop";
        /// A stop without warning.
        Kill "kill";
        /// A start.
        Start "start";
    }
}

pub(crate) static CONTROL_PLANE: Shape = Shape::new(
    "controlPlane",
    "Stops or starts the control plane.",
    &[Field::required("do", FieldType::Word(ControlPlaneAct::WORDS), "What is done.")],
);

pub(crate) fn control_plane(context: &mut Context<'_, '_>, node: &Node) -> Option<ControlPlaneAct> {
    let fields = context.reader.open(node, &CONTROL_PLANE)?;
    word(context.reader, fields.get("do")?, &ControlPlaneAct::ALL, ControlPlaneAct::name)
}
