from tests.broker.groups.conftest import Node
from tests.broker.groups.test_runtime import commit, join

from headrace.broker.groups.gauges import register_group_gauges


def test_groups_are_shown_by_type_and_state_with_the_number_of_members(node: Node) -> None:
    register_group_gauges(node.metrics, node.groups)
    node.run(commit(node, "simple"))
    node.run(join(node, group_id="g"))

    text = node.metrics.render()

    assert 'headrace_groups{type="classic",state="Empty"} 1' in text
    assert 'headrace_groups{type="classic",state="CompletingRebalance"} 1' in text
    assert "headrace_group_members 1" in text
