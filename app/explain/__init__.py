"""Why this node, why not that one: questions that people ask, answered from the parts of a decision."""
