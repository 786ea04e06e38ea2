//! The recorded history of a run, and the pure judgement of expectations over it.
