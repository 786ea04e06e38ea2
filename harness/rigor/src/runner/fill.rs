//! Acts with the names in their texts (`${NAME}`) filled in. Boards, the namespace and what was captured have values
//! only while a trial runs; everything else was filled in when the file was read.

use rigor_model::act::{
    Api, Apply, Bind, Cordon, Create, Delete, Mark, Patch, PlayedNode, Replace, RequestAct, Scale, Send,
    Target, ToolRun, User,
};
use rigor_model::template::{MissingName, fill, fill_text};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Values by name.
pub(super) type Values = BTreeMap<String, Value>;

type Filled<T> = Result<T, MissingName>;

/// Something with names in its texts.
pub(super) trait Fill: Sized {
    /// The same with values in their place.
    fn filled(&self, values: &Values) -> Filled<Self>;
}

fn optional(text: Option<&String>, values: &Values) -> Filled<Option<String>> {
    text.map(|text| fill_text(text, values)).transpose()
}

fn list(texts: &[String], values: &Values) -> Filled<Vec<String>> {
    texts.iter().map(|text| fill_text(text, values)).collect()
}

fn texts(texts: &BTreeMap<String, String>, values: &Values) -> Filled<BTreeMap<String, String>> {
    texts.iter().map(|(key, value)| Ok((fill_text(key, values)?, fill_text(value, values)?))).collect()
}

fn mapping(mapping: Option<&Map<String, Value>>, values: &Values) -> Filled<Option<Map<String, Value>>> {
    let fill_entry = |(key, value): (&String, &Value)| Ok((fill_text(key, values)?, fill(value, values)?));
    mapping.map(|mapping| mapping.iter().map(fill_entry).collect()).transpose()
}

impl Fill for Api {
    fn filled(&self, values: &Values) -> Filled<Self> {
        let user = match &self.user {
            User::Board(board) => User::Board(fill_text(board, values)?),
            User::Token(token) => User::Token(fill_text(token, values)?),
            User::Admin => User::Admin,
            User::Anonymous => User::Anonymous,
        };
        Ok(Self { user, namespace: optional(self.namespace.as_ref(), values)?, answer: self.answer.clone() })
    }
}

impl Fill for Target {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self { kind: self.kind, name: fill_text(&self.name, values)? })
    }
}

impl Fill for Apply {
    fn filled(&self, values: &Values) -> Filled<Self> {
        let objects = self.objects.iter().map(|object| fill(object, values)).collect::<Result<_, _>>()?;
        Ok(Self { objects, api: self.api.filled(values)? })
    }
}

impl Fill for Create {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self { object: fill(&self.object, values)?, api: self.api.filled(values)? })
    }
}

impl Fill for Replace {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self {
            object: fill(&self.object, values)?,
            subresource: self.subresource.clone(),
            api: self.api.filled(values)?,
        })
    }
}

impl Fill for Patch {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self {
            target: self.target.filled(values)?,
            patch_type: self.patch_type,
            patch: fill(&self.patch, values)?,
            field_manager: optional(self.field_manager.as_ref(), values)?,
            force: self.force,
            subresource: self.subresource.clone(),
            api: self.api.filled(values)?,
        })
    }
}

impl Fill for Delete {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self { target: self.target.filled(values)?, api: self.api.filled(values)?, ..self.clone() })
    }
}

impl Fill for Scale {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self {
            target: self.target.filled(values)?,
            replicas: self.replicas,
            api: self.api.filled(values)?,
        })
    }
}

impl Fill for Cordon {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self { node: fill_text(&self.node, values)?, on: self.on, api: self.api.filled(values)? })
    }
}

impl Fill for Bind {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self {
            pod: fill_text(&self.pod, values)?,
            node: fill_text(&self.node, values)?,
            uid: optional(self.uid.as_ref(), values)?,
            api: self.api.filled(values)?,
        })
    }
}

impl Fill for RequestAct {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self {
            method: self.method.clone(),
            path: fill_text(&self.path, values)?,
            body: self.body.as_ref().map(|body| fill(body, values)).transpose()?,
            content_type: optional(self.content_type.as_ref(), values)?,
            headers: texts(&self.headers, values)?,
            api: self.api.filled(values)?,
        })
    }
}

impl Fill for PlayedNode {
    fn filled(&self, values: &Values) -> Filled<Self> {
        let taints = self.taints.as_ref();
        Ok(Self {
            name: fill_text(&self.name, values)?,
            allocatable: mapping(self.allocatable.as_ref(), values)?,
            capacity: mapping(self.capacity.as_ref(), values)?,
            labels: texts(&self.labels, values)?,
            annotations: texts(&self.annotations, values)?,
            taints: taints
                .map(|taints| taints.iter().map(|taint| fill(taint, values)).collect())
                .transpose()?,
            ..self.clone()
        })
    }
}

impl Fill for Mark {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self { name: fill_text(&self.name, values)?, node: optional(self.node.as_ref(), values)? })
    }
}

impl Fill for Send {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self { board: self.board.clone(), line: fill_text(&self.line, values)? })
    }
}

impl Fill for ToolRun {
    fn filled(&self, values: &Values) -> Filled<Self> {
        Ok(Self {
            args: list(&self.args, values)?,
            stdin: self.stdin.as_ref().map(|stdin| fill(stdin, values)).transpose()?,
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigor_model::kinds::ObjectKind;
    use serde_json::json;

    fn values() -> Values {
        [("a".to_owned(), json!("board-a")), ("uid".to_owned(), json!("u-1")), ("count".to_owned(), json!(3))]
            .into()
    }

    #[test]
    fn every_text_of_an_act_is_filled() {
        let bind = Bind {
            pod: "p-${a}".to_owned(),
            node: "${a}".to_owned(),
            uid: Some("${uid}".to_owned()),
            api: Api {
                user: User::Board("${a}".to_owned()),
                namespace: Some("n-${count}".to_owned()),
                ..Api::default()
            },
        };
        let filled = bind.filled(&values()).unwrap();
        assert_eq!(
            (filled.pod.as_str(), filled.node.as_str(), filled.uid.as_deref()),
            ("p-board-a", "board-a", Some("u-1"))
        );
        assert_eq!(filled.api.user, User::Board("board-a".to_owned()));
        assert_eq!(filled.api.namespace.as_deref(), Some("n-3"));
        let create =
            Create { object: json!({"spec": {"replicas": "${count}", "${a}": "x"}}), api: Api::default() };
        assert_eq!(
            create.filled(&values()).unwrap().object,
            json!({"spec": {"replicas": 3, "board-a": "x"}})
        );
        let target = Target { kind: ObjectKind::named("Pod").unwrap(), name: "${uid}".to_owned() };
        assert_eq!(target.filled(&values()).unwrap().name, "u-1");
        let run = ToolRun {
            args: vec!["get".to_owned(), "${a}".to_owned()],
            stdin: Some(json!("${count}")),
            exit_code: 0,
            stdout: None,
            stderr: None,
        };
        let filled = run.filled(&values()).unwrap();
        assert_eq!(
            (filled.args, filled.stdin),
            (vec!["get".to_owned(), "board-a".to_owned()], Some(json!(3)))
        );
    }

    #[test]
    fn a_name_without_a_value_is_told() {
        let cordon = Cordon { node: "${nobody}".to_owned(), on: true, api: Api::default() };
        assert_eq!(cordon.filled(&values()).unwrap_err().0, "nobody");
    }
}
